import type { ClientAnswer } from '#http';
import { errorText, type JsonRpcError, type RequestMessage, resultText } from '#json-rpc';
import { modernStatusOf, META } from '../wire/revisions.ts';

/** A result that the gateway itself writes, as JSON text, or an error instead. */
export type OwnAnswer = { readonly result: string } | { readonly error: JsonRpcError };

export function endOwn(answer: ClientAnswer, { idText }: RequestMessage, own: OwnAnswer, modern: boolean): void {
  if ('result' in own) answer.end(resultText(idText, own.result), 200);
  else answer.end(errorText(idText, own.error), modern ? modernStatusOf(own.error.code) : 200);
}

export interface ServerInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** How long a client may cache a list. A client that listens is notified of changes. */
const LIST_TTL_MS = 60_000;

/**
 * A result that the gateway itself writes, as JSON text. The values of `members` are JSON text. The modern revision
 * adds the type, the server, and for a list how long it may be cached. Lists are private, because they depend on the
 * caller's rights.
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
