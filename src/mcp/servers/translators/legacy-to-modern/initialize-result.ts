import { isObject, membersOf, RawJsonError, splice, withMembers } from '#wire';
import { agreedRevision, META } from '../../../wire/revisions.ts';
import { withoutTasks } from '../../../tasks/extension.ts';
import type { ServerFacts } from '../../../request/mcp-request.ts';
import { providerFailure } from '../../../request/provider-failure.ts';

/**
 * The InitializeResult (JSON text) of a modern server for a legacy client. `requested`: the revision that the client
 * asked for. The server's capabilities are unchanged, because the server reports changes through
 * `subscriptions/listen`. `logging` is always offered, because the bridge keeps the level. All other members of the
 * DiscoverResult stay, except those that only the modern revision has. Throws UpstreamFailure.
 */
export function initializeResult(facts: ServerFacts, requested: string | null): string {
  try {
    return toInitialize(facts.text, requested);
  } catch (error) {
    throw error instanceof RawJsonError
      ? providerFailure(`the provider's answer to server/discover is not MCP: ${error.message}`, null, error)
      : error;
  }
}

function toInitialize(text: string, requested: string | null): string {
  const members = membersOf(text);
  const place = members.get('capabilities');
  const capabilities = withoutTasks(place && isObject(parse(text, place)) ? text.slice(place.start, place.end) : '{}');
  const logging = membersOf(capabilities).has('logging') ? {} : { logging: '{}' };
  const whole = { start: 0, end: text.length };
  return splice(text, [
    withMembers(text, whole, {
      ...MODERN_ONLY,
      protocolVersion: JSON.stringify(agreedRevision(requested)),
      capabilities: splice(capabilities, [withMembers(capabilities, { start: 0, end: capabilities.length }, logging)]),
      serverInfo: serverInfoOf(text),
    }),
  ]);
}

const MODERN_ONLY = { resultType: null, ttlMs: null, cacheScope: null, supportedVersions: null } as const;

/** A modern server may omit its name, but a legacy server must give one. */
const NAMELESS = JSON.stringify({ name: 'unknown', version: 'unknown' });

/** The server's info (JSON text). It is in `_meta`; servers of earlier drafts have it in the result itself. */
function serverInfoOf(text: string): string {
  const members = membersOf(text);
  const meta = members.get('_meta');
  const inMeta = meta && isObject(parse(text, meta)) ? membersOf(text, meta.start).get(META.serverInfo) : undefined;
  for (const place of [inMeta, members.get('serverInfo')]) {
    const info = place && parse(text, place);
    if (isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string')
      return text.slice(place!.start, place!.end);
  }
  return NAMELESS;
}

const parse = (text: string, { start, end }: { readonly start: number; readonly end: number }): unknown =>
  JSON.parse(text.slice(start, end));
