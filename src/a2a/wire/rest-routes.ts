import type { Operation } from './methods.ts';
import type { A2aVersion } from './version.ts';

export type RestVerb = 'GET' | 'POST' | 'DELETE';

/**
 * A route of the HTTP+JSON binding, below the interface's URL. `{id}` is the task, `{configId}` the push
 * notification configuration.
 */
interface RestRoute {
  readonly operation: Operation;
  readonly verb: RestVerb;
  readonly path: string;
}

/**
 * 1.0: section 5.3 and the `google.api.http` options of `a2a.proto`; each route may also be below `/{tenant}`. For
 * subscribe, section 5.3 uses POST and the proto uses GET, so both are served. 0.3: section 3.5.6; its clients
 * subscribe by GET too. Routes with longer literals come first, because an id may contain any character but a slash.
 */
export const REST_ROUTES: Readonly<Record<A2aVersion, readonly RestRoute[]>> = {
  '1.0': routesBelow('', 'extendedAgentCard', true),
  '0.3': routesBelow('/v1', 'card', false),
};

function routesBelow(root: string, card: string, lists: boolean): readonly RestRoute[] {
  const task = `${root}/tasks/{id}`;
  return [
    { operation: 'send', verb: 'POST', path: `${root}/message:send` },
    { operation: 'stream', verb: 'POST', path: `${root}/message:stream` },
    { operation: 'card', verb: 'GET', path: `${root}/${card}` },
    { operation: 'cancel', verb: 'POST', path: `${task}:cancel` },
    { operation: 'subscribe', verb: 'POST', path: `${task}:subscribe` },
    { operation: 'subscribe', verb: 'GET', path: `${task}:subscribe` },
    { operation: 'push-set', verb: 'POST', path: `${task}/pushNotificationConfigs` },
    { operation: 'push-list', verb: 'GET', path: `${task}/pushNotificationConfigs` },
    { operation: 'push-get', verb: 'GET', path: `${task}/pushNotificationConfigs/{configId}` },
    { operation: 'push-delete', verb: 'DELETE', path: `${task}/pushNotificationConfigs/{configId}` },
    { operation: 'get', verb: 'GET', path: task },
    ...(lists ? [{ operation: 'list', verb: 'GET', path: `${root}/tasks` } as const] : []),
  ];
}

export interface RestMatch {
  readonly operation: Operation;
  /** The decoded ids. `tenant` is present if the path has a tenant before the route (1.0). */
  readonly ids: { readonly tenant?: string; readonly id?: string; readonly configId?: string };
}

/** A path without a route for the verb. `allowed`: the verbs of the path; empty for an unknown path. */
interface RestMiss {
  readonly allowed: readonly RestVerb[];
}

/**
 * The operation of a request below the interface's URL. `path` begins with a slash, is still percent-encoded and
 * has no query. Never throws.
 */
export function matchRest(version: A2aVersion, verb: string, path: string): RestMatch | RestMiss {
  const allowed = new Set<RestVerb>();
  for (const { route, pattern } of PATTERNS[version]) {
    const found = path.length <= PATH_CHARS_MAX ? pattern.exec(path) : null;
    const ids = found === null ? null : decoded({ ...found.groups });
    if (ids === null) continue;
    if (route.verb === verb) return { operation: route.operation, ids };
    allowed.add(route.verb);
  }
  return { allowed: [...allowed] };
}

const PATH_CHARS_MAX = 4_096;

interface Pattern {
  readonly route: RestRoute;
  readonly pattern: RegExp;
}

const PATTERNS: Readonly<Record<A2aVersion, readonly Pattern[]>> = {
  '0.3': REST_ROUTES['0.3'].map((route) => toPattern(route, false)),
  '1.0': [false, true].flatMap((tenants) => REST_ROUTES['1.0'].map((route) => toPattern(route, tenants))),
};

function toPattern(route: RestRoute, tenants: boolean): Pattern {
  const path = route.path.replaceAll('/', '\\/').replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+?)');
  return { route, pattern: new RegExp(`^${tenants ? '\\/(?<tenant>[^/]+)' : ''}${path}\\/?$`) };
}

/** Decodes the ids; null for an invalid percent encoding. */
function decoded(groups: Record<string, string>): RestMatch['ids'] | null {
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch {
    return null;
  }
}
