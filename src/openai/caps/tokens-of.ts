/** Bytes of a token on average, for measures. A bound needs another number. */
export const BYTES_PER_TOKEN = 4;

/** About how many tokens `bytes` of text are. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
