/** What a token is in bytes on average, where a measure is wanted instead of a bound. */
export const BYTES_PER_TOKEN = 4;

/** About how many tokens `bytes` of text are. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
