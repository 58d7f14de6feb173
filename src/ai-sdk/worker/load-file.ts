import { RequestFault } from './fault.ts';

const FILE_BYTES_MAX = 20 * 1024 * 1024;
const FILE_MS = 20_000;

/** A file as base64, with the media type that its address told. */
interface LoadedFile {
  readonly data: string;
  readonly mediaType: string;
}

/** Loads a file that a request names by its address, at most 20 MiB. Throws RequestFault. */
export async function loadFile(
  url: URL,
  { fetch: load, signal }: { readonly fetch: typeof fetch; readonly signal: AbortSignal },
): Promise<LoadedFile> {
  const refusal = (why: string) => new RequestFault(`A file of the request could not be loaded: ${why}`);
  try {
    const response = await load(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(FILE_MS)]) });
    if (!response.ok || response.body === null) throw refusal(`its address answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (bytes > FILE_BYTES_MAX) throw refusal(`it has more than ${FILE_BYTES_MAX} bytes`);
    }
    const type = response.headers.get('content-type')?.split(';', 1)[0]?.trim();
    return { data: Buffer.concat(chunks).toString('base64'), mediaType: type ?? 'application/octet-stream' };
  } catch (error) {
    if (error instanceof RequestFault) throw error;
    throw refusal('its address gave no reply');
  }
}
