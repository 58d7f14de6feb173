import { fetchText } from '#wire';

export interface FetchJsonOptions {
  /** The limit for the body in bytes, after decompression. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/**
 * Fetches JSON. Follows no redirect. Rejects if the status is not 200, if the body is too large or not JSON, or when
 * the signal aborts.
 */
export async function fetchJson(url: string, { bytesMax, signal }: FetchJsonOptions): Promise<unknown> {
  const { status, text } = await fetchText(url, { bytesMax, signal });
  if (status !== 200) throw new Error(`answers ${status}`);
  return JSON.parse(text) as unknown;
}
