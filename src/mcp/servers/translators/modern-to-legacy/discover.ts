import { isObject, type JsonObject, membersOf, resultText } from '#wire';
import { META, MODERN } from '../../../wire/revisions.ts';
import { withoutTasks } from '../../../tasks/extension.ts';
import type { ServerFacts } from '../../../request/mcp-request.ts';

/** The gateway asks the server just as often, because a replaced server may have other capabilities. */
const DISCOVER_TTL_MS = 5 * 60_000;

/** The answer to `server/discover` for a legacy server, made from the server's answer to `initialize`. */
export function discoverText(idText: string, { text }: Pick<ServerFacts, 'text'>): string {
  const members = membersOf(text);
  const value = JSON.parse(text) as JsonObject;
  const part = (key: string) => {
    const span = members.get(key);
    return span && isObject(value[key]) ? span : null;
  };
  const capabilities = part('capabilities');
  const serverInfo = part('serverInfo');
  const instructions = typeof value['instructions'] === 'string' ? JSON.stringify(value['instructions']) : null;
  const entries = [
    `"supportedVersions":["${MODERN}"]`,
    `"capabilities":${capabilities === null ? '{}' : withoutTasks(text.slice(capabilities.start, capabilities.end))}`,
    ...(instructions === null ? [] : [`"instructions":${instructions}`]),
    ...(serverInfo === null ? [] : [`"_meta":{"${META.serverInfo}":${text.slice(serverInfo.start, serverInfo.end)}}`]),
    `"resultType":"complete","ttlMs":${DISCOVER_TTL_MS},"cacheScope":"private"`,
  ];
  return resultText(idText, `{${entries.join(',')}}`);
}
