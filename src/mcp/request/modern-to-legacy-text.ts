// The texts of messages between a modern client and a legacy server, in both directions.

import { type Edit, isObject, membersOf, setMember, splice, withMembers, elementsOf, type JsonObject } from '#wire';
import { type RequestMessage, type ResponseMessage, type NotificationMessage, resultText } from '#json-rpc';
import { META, ERROR, MODERN_METHODS, rankOfLevel, MODERN } from '../wire/revisions.ts';
import type { McpRequest, ServerFacts } from './mcp-request.ts';
import { withoutTasks } from './extension.ts';

/** Members of `_meta` that make a request modern. A legacy server gets the same facts from its session. */
const ENVELOPE = [META.version, META.capabilities, META.clientInfo, META.logLevel];
/** Members of `params` that continue an earlier round. Legacy servers do not know them. */
const ROUND = ['inputResponses', 'requestState'];

/**
 * A request for its session. It has no envelope. Its id and its progress token are a number of the session, because
 * many clients count both from 0. Every other character stays.
 */
export function toLegacyRequest({ text, members }: RequestMessage, id: number): string {
  const edits: Edit[] = [setMember(text, 0, 'id', String(id))];
  const params = members.get('params');
  if (!params) return splice(text, edits);
  const change: Record<string, string | null> = {};
  const inside = membersOf(text, params.start);
  for (const key of ROUND) if (inside.has(key)) change[key] = null;
  const meta = inside.get('_meta');
  if (meta && text[meta.start] === '{') {
    const entries = membersOf(text, meta.start);
    const dropped = ENVELOPE.filter((key) => entries.has(key));
    const changes: Record<string, string | null> = Object.fromEntries(dropped.map((key) => [key, null]));
    if (entries.has('progressToken')) changes['progressToken'] = String(id);
    if (dropped.length > 0 && dropped.length === entries.size) change['_meta'] = null;
    else if (Object.keys(changes).length > 0) change['_meta'] = withMembers(text, meta, changes).text;
  }
  if (Object.keys(change).length > 0) edits.push(withMembers(text, params, change));
  return splice(text, edits);
}

/** The progress token that the client gave, as JSON text; null without one. */
export function progressTokenOf({ text, members, params }: RequestMessage): string | null {
  if (!isObject(params?.['_meta']) || !Object.hasOwn(params['_meta'], 'progressToken')) return null;
  const meta = membersOf(text, members.get('params')!.start).get('_meta')!;
  const { start, end } = membersOf(text, meta.start).get('progressToken')!;
  return text.slice(start, end);
}

/** A legacy server does not say how long its answers are valid, so they expire at once. */
const CACHE = { ttlMs: '0', cacheScope: '"private"' } as const;

/** Codes that the modern revision no longer has, with the codes that replace them. */
const CODES: ReadonlyMap<number, number> = new Map([
  [ERROR.resourceNotFound, ERROR.invalidParams],
  [ERROR.urlElicitation, ERROR.internal],
]);

/**
 * A legacy server's response as the response to the client's request, with the id of that request. For a modern client,
 * it adds the members that results must have and replaces error codes. Every other character stays. Null if the result
 * is not an object.
 */
export function toClientResponse(
  { message, client }: Pick<McpRequest, 'message' | 'client'>,
  { text, members, result, error }: ResponseMessage,
): string | null {
  const edits: Edit[] = [{ ...members.get('id')!, text: message.idText }];
  if (error === undefined && !isObject(result)) return null;
  if (client === 'modern' && error === undefined) {
    const cache = MODERN_METHODS[message.method]?.cacheable ? CACHE : {};
    edits.push(withMembers(text, members.get('result')!, { resultType: '"complete"', ...cache }));
  }
  const code = client === 'modern' && error !== undefined ? CODES.get(error.code) : undefined;
  if (code !== undefined)
    edits.push({ ...membersOf(text, members.get('error')!.start).get('code')!, text: String(code) });
  return splice(text, edits);
}

/** The URLs of such an error as `inputRequests` (JSON text); null for any other response. */
export function urlInputRequests({ text, members, error }: ResponseMessage): string | null {
  if (error?.code !== ERROR.urlElicitation) return null;
  const elicitations = isObject(error.data) ? error.data['elicitations'] : null;
  if (!Array.isArray(elicitations) || elicitations.length === 0) return null;
  if (!elicitations.every((one) => isObject(one) && one['mode'] === 'url')) return null;
  const data = membersOf(text, members.get('error')!.start).get('data')!;
  const spans = elementsOf(text, membersOf(text, data.start).get('elicitations')!.start);
  const requests = spans.map(
    ({ start, end }, index) =>
      `"input-${index + 1}":{"method":"elicitation/create","params":${text.slice(start, end)}}`,
  );
  return `{${requests.join(',')}}`;
}

/**
 * A notification about a call, as text for the client. Progress gets the client's own token. Log messages pass from the
 * level that the client asked for. Null for a notification that is not for the client.
 */
export function toClientNotification(
  mcpRequest: McpRequest,
  call: { readonly id: number },
  message: NotificationMessage,
): string | null {
  const { method, params, text, members } = message;
  switch (method) {
    case 'notifications/message': {
      const level = levelOf(mcpRequest);
      return level !== null && rankOfLevel(params?.['level']) >= rankOfLevel(level) ? text : null;
    }
    case 'notifications/progress': {
      const token = progressTokenOf(mcpRequest.message);
      if (token === null || params?.['progressToken'] !== call.id) return null;
      return splice(text, [{ ...membersOf(text, members.get('params')!.start).get('progressToken')!, text: token }]);
    }
    // The modern revision does not have this notification. The client itself must notice that its page is done.
    case 'notifications/elicitation/complete':
      return null;
    default:
      return text;
  }
}

/** The lowest level of log messages that the client wants; null if it wants none. */
export function levelOf({ client, message }: McpRequest): string | null {
  const meta = message.params?.['_meta'];
  const level = client === 'modern' && isObject(meta) ? meta[META.logLevel] : null;
  return typeof level === 'string' ? level : null;
}

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
