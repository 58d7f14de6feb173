import { isLoopback, parseHost } from '#wire';
import type { WebRequest } from '#gateway';

/**
 * Whether a browser of this very machine asks: its address is of this machine, no proxy passed it on, and it calls the
 * gateway by a name of this machine. A page of a stranger whose name leads here (DNS rebinding) has that name in Host.
 * A proxy may write Host anew and add no header. Then Origin still has the name that the visitor's browser used.
 */
export function isLocalBrowser({ headers, host }: WebRequest, peer: string | undefined): boolean {
  const address = peer?.replace(/^::ffff:/, '') ?? '';
  const passedOn = Object.keys(headers).some((name) => name.startsWith('x-forwarded-') || PASSED_ON.has(name));
  const isOwnPage = headers.origin === undefined || isLoopback(URL.parse(headers.origin)?.hostname ?? '');
  return isLoopback(address) && !passedOn && isOwnPage && isLoopback(parseHost(host)?.name ?? '');
}

const PASSED_ON: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip']);
