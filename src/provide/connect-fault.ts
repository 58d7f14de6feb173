import { oneLine } from '#wire';

/**
 * Why a connection failed, in words for people on one line. Of an https:// address where no TLS is spoken the
 * library says nothing that tells somebody who mistyped a letter what to correct.
 */
export function describeFault(error: Error): string {
  // Of a host with several addresses the error of each is inside, and the message is empty.
  const inner = error instanceof AggregateError ? (error.errors[0] as Error | undefined) : undefined;
  const text = error.message || inner?.message || (error as NodeJS.ErrnoException).code || error.name;
  if (/wrong version number|packet length too long/.test(text)) return 'no TLS is spoken there: should it be http://?';
  return oneLine(text);
}
