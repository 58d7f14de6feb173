import { matchRest, type RestMatch, type RestVerb } from './wire/rest-routes.ts';
import type { A2aVersion } from './wire/version.ts';

/** What an address below `/a2a` is: JSON-RPC (or a bare message) to a service, or a route of HTTP+JSON. The service is empty for all agents together. */
export type Address =
  | { readonly kind: 'rpc'; readonly service: string }
  | { readonly kind: 'rest'; readonly service: string; readonly version: A2aVersion; readonly match: RestMatch }
  /** There is such a route, but not with this verb. */
  | { readonly kind: 'verb'; readonly service: string; readonly version: A2aVersion; readonly allowed: readonly RestVerb[] };

/**
 * Reads an address. `path` is what follows `/a2a`, percent-encoded: empty, or with a leading slash. Names of services have slashes in them, so the longest
 * one that there is counts. `version`: what the client said; null where it said none, and the route tells.
 */
export function readAddress(verb: string, path: string, version: A2aVersion | null, isService: (name: string) => boolean): Address {
  const whole = decode(path.replace(/\/$/, '').slice(1));
  if (path === '' || path === '/') return { kind: 'rpc', service: '' };
  if (verb === 'POST' && whole !== null && isService(whole)) return { kind: 'rpc', service: whole };
  const versions: readonly A2aVersion[] = version === null ? ['0.3', '1.0'] : [version];
  let wrong: Address | null = null;
  for (let at = path.lastIndexOf('/'); at >= 0; at = at === 0 ? -1 : path.lastIndexOf('/', at - 1)) {
    const service = decode(path.slice(1, at));
    if (service === null || (at > 0 && !isService(service))) continue;
    for (const one of versions) {
      const match = matchRest(one, verb, path.slice(at));
      if ('operation' in match) return { kind: 'rest', service, version: one, match };
      if (match.allowed.length > 0) wrong ??= { kind: 'verb', service, version: one, allowed: match.allowed };
    }
  }
  return wrong ?? { kind: 'rpc', service: whole ?? path.slice(1) };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
