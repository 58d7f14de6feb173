import { matchRest, type RestMatch, type RestVerb } from '../wire/rest.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/**
 * The kind of an address below `/a2a`: JSON-RPC (or a bare message) to a service, or a route of HTTP+JSON. An empty
 * service means the address of all agents.
 */
export type Address =
  | { readonly kind: 'rpc'; readonly service: string }
  | { readonly kind: 'rest'; readonly service: string; readonly version: A2aVersion; readonly match: RestMatch }
  /** The route or agent exists, but does not take this verb. */
  | {
      readonly kind: 'verb';
      readonly service: string;
      readonly version: A2aVersion;
      readonly allowed: readonly RestVerb[];
    }
  /** No such address. */
  | { readonly kind: 'none' };

/**
 * Reads an address. `path` is the part after `/a2a`, percent-encoded: empty, or with a leading slash. Names of services
 * contain slashes, so the longest known name counts. `version` is the one that the client named. null: it named none,
 * and the route decides.
 */
export function readAddress(
  verb: string,
  path: string,
  version: A2aVersion | null,
  isService: (name: string) => boolean,
): Address {
  const whole = decode(path.replace(/\/$/, '').slice(1));
  const posted = verb === 'POST';
  if (path === '' || path === '/')
    return posted
      ? { kind: 'rpc', service: '' }
      : { kind: 'verb', service: '', version: version ?? '0.3', allowed: POST };
  const known = whole !== null && isService(whole);
  const named: Address | null = posted && known ? { kind: 'rpc', service: whole } : null;
  // The name of this service looks like a route. The routes of other agents are tried first, so that it cannot take
  // their requests.
  if (named !== null && !ROUTE_LIKE.test(path)) return named;
  const places: Place[] = [];
  const unknown: Place[] = [];
  for (
    let at = path.lastIndexOf('/'), pieces = 0;
    at >= 0 && pieces < PIECES_MAX;
    at = at === 0 ? -1 : path.lastIndexOf('/', at - 1), pieces += 1
  ) {
    const service = at > SERVICE_CHARS_MAX ? null : decode(path.slice(1, at));
    if (service !== null) (at === 0 || isService(service) ? places : unknown).push({ at, service });
  }
  let wrong: Address | null = null;
  // A request without a version matches the routes of 0.3 first, before the longer name of a service whose end looks
  // like a route of 1.0.
  for (const one of version === null ? VERSIONS : [version])
    for (const { at, service } of places) {
      const match = matchRest(one, verb, path.slice(at));
      if ('operation' in match) return { kind: 'rest', service, version: one, match };
      if (match.allowed.length > 0) wrong ??= { kind: 'verb', service, version: one, allowed: match.allowed };
    }
  if (named !== null) return named;
  if (wrong !== null) return wrong;
  if (known) return { kind: 'verb', service: whole, version: version ?? '0.3', allowed: POST };
  // An address below an agent that looks like a route of HTTP+JSON is a misspelt route, not the name of another agent.
  const misspelt = /:[^/]+$/.test(path) && places.some(({ at }) => at > 0);
  // A route of an agent that does not exist. So the client reads the error in the form of its binding.
  if (!misspelt)
    for (const one of version === null ? VERSIONS : [version])
      for (const { at, service } of unknown) {
        const match = matchRest(one, verb, path.slice(at));
        if ('operation' in match) return { kind: 'rest', service, version: one, match };
      }
  return posted && !misspelt ? { kind: 'rpc', service: whole ?? path.slice(1) } : { kind: 'none' };
}

/** A way to divide a path: where the route begins, and the service before it. */
interface Place {
  readonly at: number;
  readonly service: string;
}

const POST = ['POST'] as const;
const VERSIONS = ['0.3', '1.0'] as const;
/** Every route that takes POST looks like this. */
const ROUTE_LIKE = /\/(?:message:|tasks\/)/;

/**
 * The pieces of the longest route, with a trailing slash. The bound is needed because an address may consist of slashes
 * only.
 */
const PIECES_MAX = 7;
/** Counts percent-encoded characters. Names of services are shorter. */
const SERVICE_CHARS_MAX = 1_024;

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
