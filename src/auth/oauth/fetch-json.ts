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
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'error', signal });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`answers ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    // Leaving the loop cancels the body.
    if (bytes > bytesMax) throw new Error(`answers with more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
}
