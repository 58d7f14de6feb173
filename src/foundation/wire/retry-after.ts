/**
 * The whole seconds of a Retry-After header, rounded up: of a number, which some send with a fraction, or until a date
 * of HTTP. At most an hour, because clients and the gateway itself wait so long. undefined for any other value.
 */
export function retryAfterOf(header: unknown): number | undefined {
  if (typeof header !== 'string') return undefined;
  const seconds = /^\d{1,15}(?:\.\d{1,9})?$/.test(header)
    ? Number(header)
    : // Date.parse also takes texts that are no dates of HTTP, such as a negative number.
      /^[A-Z][a-z]+,? /.test(header)
      ? Math.max(0, (Date.parse(header) - Date.now()) / 1000)
      : Number.NaN;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.ceil(seconds), RETRY_AFTER_S_MAX);
}

/** An hour. */
const RETRY_AFTER_S_MAX = 3_600;
