import { isLoopback, parseHost } from '#wire';
import type { WebRequest } from '#gateway';

/**
 * Whether a request comes from a browser on this machine. The peer's address and the Host must be loopback, and no
 * proxy may have forwarded the request. The check of Host stops DNS rebinding, where a foreign page's domain resolves
 * to this machine and is sent as Host. A proxy may rewrite Host without adding a header, but Origin still has the
 * domain that the visitor's browser used.
 */
export function isLocalBrowser({ headers, host }: WebRequest, peer: string | undefined): boolean {
  const address = peer?.replace(/^::ffff:/, '') ?? '';
  const passedOn = Object.keys(headers).some((name) => name.startsWith('x-forwarded-') || PASSED_ON.has(name));
  const isOwnPage = headers.origin === undefined || isLoopback(URL.parse(headers.origin)?.hostname ?? '');
  return isLoopback(address) && !passedOn && isOwnPage && isLoopback(parseHost(host)?.name ?? '');
}

const PASSED_ON: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip']);
