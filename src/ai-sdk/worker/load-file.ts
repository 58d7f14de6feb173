import { RequestFault } from './fault.ts';

const MIB = 1024 * 1024;
const FILE_BYTES_MAX = 20 * MIB;
const FILE_MS = 20_000;
/** Files of one request, and their bytes together. */
const FILES_MAX = 100;
const FILES_BYTES_MAX = 32 * MIB;
/** Bytes of the files of all running calls: each takes about five times as many here, as base64 and as a request. */
const HELD_BYTES_MAX = 64 * MIB;
let held = 0;

/** A file as base64, with the media type that its address told. */
interface LoadedFile {
  readonly data: string;
  readonly mediaType: string;
}

/** The files that one request names by their addresses. They are loaded one after the other. */
export class RequestFiles {
  readonly #fetch: typeof fetch;
  readonly #signal: AbortSignal;
  #last: Promise<unknown> = Promise.resolve();
  #files = 0;
  #bytes = 0;
  #fault: RequestFault | null = null;

  /** `load`: `fetch` for addresses that consumers name. `signal` aborts when the call has ended. */
  constructor(load: typeof fetch, signal: AbortSignal) {
    this.#fetch = load;
    this.#signal = signal;
    signal.addEventListener('abort', () => (held -= this.#bytes));
  }

  /** Rejects with RequestFault. No other file is loaded then. */
  load(url: URL): Promise<LoadedFile> {
    this.#files += 1;
    if (this.#files > FILES_MAX)
      this.#fault ??= new RequestFault(`The request names more than ${FILES_MAX} files by their addresses`, {
        status: 422,
      });
    const loaded = this.#last.then(() => this.#load(url));
    this.#last = loaded;
    return loaded;
  }

  async #load(url: URL): Promise<LoadedFile> {
    if (this.#fault !== null) throw this.#fault;
    try {
      const response = await this.#fetch(url, {
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(FILE_MS)]),
      });
      if (!response.ok || response.body === null) throw refusal(`its address answered ${response.status}`);
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        chunks.push(chunk);
        bytes += chunk.byteLength;
        if (bytes > FILE_BYTES_MAX) throw refusal(`it has more than ${FILE_BYTES_MAX} bytes`, 413);
        this.#count(chunk.byteLength);
      }
      const type = response.headers.get('content-type')?.split(';', 1)[0]?.trim();
      return { data: Buffer.concat(chunks).toString('base64'), mediaType: type ?? 'application/octet-stream' };
    } catch (error) {
      throw error instanceof RequestFault ? error : refusal('its address gave no reply');
    }
  }

  #count(bytes: number): void {
    if (this.#signal.aborted) return;
    held += bytes;
    this.#bytes += bytes;
    if (this.#bytes > FILES_BYTES_MAX)
      throw new RequestFault(`The files of the request have more than ${FILES_BYTES_MAX} bytes together`, {
        status: 413,
      });
    if (held > HELD_BYTES_MAX)
      throw new RequestFault(`The files of all running calls have more than ${HELD_BYTES_MAX} bytes. Try it again`, {
        status: 429,
      });
  }
}

const refusal = (why: string, status = 400): RequestFault =>
  new RequestFault(`A file of the request could not be loaded: ${why}`, { status });
