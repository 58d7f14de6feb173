/**
 * The dialect of the addresses that clients of OpenAI's API use. `openai` is spoken below `/v1`, for clients that read
 * OpenAI's API strictly: the `code` of an error is a word or null, and a stream has its usage in a chunk of its own, if
 * the client asked for it. `own` is spoken below `/api/v1`: the `code` is the HTTP status, and the last chunk of a
 * stream always has the usage.
 */
export type Dialect = 'openai' | 'own';

/** The prefix of the addresses of the `openai` dialect. The server answers them like those below `/api/v1`. */
export const STRICT_PREFIX = '/v1/';

/** `originalUrl`: the address as the client wrote it. */
export const dialectOf = ({ originalUrl }: { readonly originalUrl: string }): Dialect =>
  originalUrl.startsWith(STRICT_PREFIX) ? 'openai' : 'own';

/** A path without slashes at its end. A pattern for them would take a second for a path of many. */
export function withoutEndSlashes(path: string): string {
  let end = path.length;
  while (path.endsWith('/', end)) end -= 1;
  return path.slice(0, end);
}
