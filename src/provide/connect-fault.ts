import { oneLine } from '#wire';

/**
 * Describes in one line why a connection failed. If an https:// address speaks no TLS, the library's message doesn't
 * help somebody who mistyped the scheme, so it is replaced.
 */
export function describeFault(error: Error): string {
  // If a host has several addresses, the error is an AggregateError with an empty message. The errors of the addresses
  // are inside.
  const inner = error instanceof AggregateError ? (error.errors[0] as Error | undefined) : undefined;
  const text = error.message || inner?.message || (error as NodeJS.ErrnoException).code || error.name;
  if (/wrong version number|packet length too long/.test(text))
    return "the server doesn't speak TLS; did you mean http://?";
  return oneLine(text);
}
