import { META } from '../wire/revisions.ts';

/** The gateway's name to an MCP client. */
export interface ServerInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** How long a client may keep a list. It is told of changes, if it listens. */
const LIST_TTL_MS = 60_000;

/**
 * A result of the gateway's own, JSON text, of members that are JSON text. The modern revision adds the type, the
 * server, and for a list how long it may be kept. Lists are private: they depend on the caller's rights.
 */
export function ownResult(
  members: Readonly<Record<string, string>>,
  info: ServerInfo,
  modern: boolean,
  cached: boolean,
): string {
  const all = modern
    ? {
        ...members,
        ...(cached ? { ttlMs: String(LIST_TTL_MS), cacheScope: '"private"' } : {}),
        resultType: '"complete"',
        _meta: JSON.stringify({ [META.serverInfo]: info }),
      }
    : members;
  return `{${Object.entries(all)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
    .join()}}`;
}
