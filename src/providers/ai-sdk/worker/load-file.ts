import { RequestFault } from './fault.ts';
import type { WorkerCall } from './worker-call.ts';

const MIB = 1024 * 1024;
const FILE_BYTES_MAX = 20 * MIB;
const FILE_MS = 20_000;
/** Files of one request, and their bytes together. */
const FILES_MAX = 100;
const FILES_BYTES_MAX = 32 * MIB;
/** Bytes of the files of all running calls: each takes about five times as many here, as base64 and as a request. */
const HELD_BYTES_MAX = 64 * MIB;
let held = 0;
/** Of `held`, by consumer. */
const heldBy = new Map<string, number>();

/** `bytes` may be negative. */
function hold(consumer: string | undefined, bytes: number): void {
  held += bytes;
  if (consumer === undefined) return;
  const own = (heldBy.get(consumer) ?? 0) + bytes;
  if (own > 0) heldBy.set(consumer, own);
  else heldBy.delete(consumer);
}

/** A file as base64, with the media type that its address told. */
interface LoadedFile {
  readonly data: string;
  readonly mediaType: string;
}

/** The files that one request names by their addresses. They are loaded one after the other. */
export class RequestFiles {
  readonly #fetch: typeof fetch;
  readonly #signal: AbortSignal;
  readonly #consumer: string | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #files = 0;
  #bytes = 0;
  #fault: RequestFault | null = null;

  /** `load`: `fetch` for addresses that consumers name. */
  constructor(load: typeof fetch, { signal, consumer }: Pick<WorkerCall, 'signal' | 'consumer'>) {
    this.#fetch = load;
    this.#signal = signal;
    this.#consumer = consumer;
    signal.addEventListener('abort', () => hold(consumer, -this.#bytes));
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
    if (this.#bytes + bytes > FILES_BYTES_MAX)
      throw new RequestFault(`The files of the request have more than ${FILES_BYTES_MAX} bytes together`, {
        status: 413,
      });
    // As everywhere in the gateway, one may take more while at least as much is free before as it holds after it.
    const own = this.#consumer === undefined ? 0 : (heldBy.get(this.#consumer) ?? 0);
    if (own + bytes > HELD_BYTES_MAX - held) {
      const whose = own === 0 ? 'all running calls' : 'your running calls, and those of others,';
      throw new RequestFault(`The files of ${whose} leave too few of ${HELD_BYTES_MAX} bytes. Try it again`, {
        status: 429,
        // SHARE_TAKEN of `wire`, which this program cannot import.
        code: 'share_taken',
      });
    }
    this.#bytes += bytes;
    hold(this.#consumer, bytes);
  }
}

const refusal = (why: string, status = 400): RequestFault =>
  new RequestFault(`A file of the request could not be loaded: ${why}`, { status });
