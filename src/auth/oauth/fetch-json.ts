import { fetchText } from '#wire';

export interface FetchJsonOptions {
  /** Bytes of the answer, unpacked. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/**
 * The JSON that an address answers with. Follows no redirect. Rejects where the answer is another one, is too
 * large, or takes too long.
 */
export async function fetchJson(url: string, { bytesMax, signal }: FetchJsonOptions): Promise<unknown> {
  const { status, text } = await fetchText(url, { bytesMax, signal });
  if (status !== 200) throw new Error(`answers ${status}`);
  return JSON.parse(text) as unknown;
}
