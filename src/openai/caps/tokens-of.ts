/** Average bytes of a token, for estimates. A bound needs another number. */
export const BYTES_PER_TOKEN = 4;

/** The estimated number of tokens in `bytes` of text. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
