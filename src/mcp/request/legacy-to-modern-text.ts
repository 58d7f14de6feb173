// The texts of messages between a legacy client and a modern server, in both directions.

import {
  type Edit,
  isObject,
  membersOf,
  setMember,
  type Span,
  splice,
  withMembers,
  RawJsonError,
  type JsonObject,
  type JsonMember,
} from '#wire';
import type { RequestMessage, ResponseMessage } from '#json-rpc';
import { ERROR, LEGACY_METHODS, META, agreedRevision, MODERN } from '../wire/revisions.ts';
import { withoutTasks, withoutTaskMembers } from './extension.ts';
import type { ServerFacts, LegacySession } from './mcp-request.ts';
import { providerFailure } from './ending.ts';

/**
 * A modern server's response, changed into the answer to a legacy client's request, as JSON text. This changes the id,
 * members of a result that only the modern revision has, outputs that are not objects, and error codes that legacy
 * clients do not know. All other bytes stay. Throws RawJsonError if the result cannot be read.
 */
export function toLegacyResponse(request: RequestMessage, response: ResponseMessage): string {
  const { text, members } = response;
  const body = members.get(response.error ? 'error' : 'result')!;
  const id = members.get('id');
  return splice(text, [
    id ? { start: id.start, end: id.end, text: request.idText } : setMember(text, 0, 'id', request.idText),
    ...(response.error ? codeEdit(request, response, body) : [resultEdit(request, response, body)]),
  ]);
}

function resultEdit({ method }: RequestMessage, { text, result }: ResponseMessage, span: Span): Edit {
  const change: Record<string, string | null> = { resultType: null };
  if (LEGACY_METHODS[method]?.cacheable) Object.assign(change, { ttlMs: null, cacheScope: null });
  const members = membersOf(text, span.start);
  const { structuredContent } = result as Readonly<Record<string, unknown>>;
  if (method === 'tools/call' && structuredContent !== undefined) {
    const changed = objectContent(text, members.get('structuredContent')!, structuredContent);
    if (changed !== null) change['structuredContent'] = changed;
  }
  return withMembers(text, span, change);
}

function codeEdit(request: RequestMessage, { text, error }: ResponseMessage, span: Span): Edit[] {
  const code = legacyCode(request, error!.code, error!.data);
  if (code === error!.code) return [];
  const { start, end } = membersOf(text, span.start).get('code')!;
  return [{ start, end, text: String(code) }];
}

/**
 * The legacy code of an error. A fault in the envelope or headers becomes an internal error, because the bridge wrote
 * them. A missing resource has its own legacy code.
 */
function legacyCode({ method, params }: RequestMessage, code: number, data: unknown): number {
  if (code === ERROR.headerMismatch || code === ERROR.unsupportedVersion) return ERROR.internal;
  if (code === ERROR.missingCapability) return ERROR.invalidParams;
  const notFound =
    code === ERROR.invalidParams && method === 'resources/read' && isObject(data) && data['uri'] === params?.['uri'];
  return notFound ? ERROR.resourceNotFound : code;
}

/** A notification without the id of its subscription. */
export function withoutSubscription(text: string): string {
  const params = membersOf(text).get('params');
  const meta = params && membersOf(text, params.start).get('_meta');
  if (!meta) return text;
  const keys = [...membersOf(text, meta.start).keys()];
  if (!keys.includes(META.subscriptionId)) return text;
  return splice(text, [
    keys.length === 1
      ? withMembers(text, params, { _meta: null })
      : withMembers(text, meta, { [META.subscriptionId]: null }),
  ]);
}

/** The `structuredContent` of a result for a legacy client, if it is not an object. Null: no change. */
function objectContent(text: string, content: Span, value: unknown): string | null {
  return isObject(value) ? null : `{"result":${text.slice(content.start, content.end)}}`;
}

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

/** Members of `_meta`: JSON text by key. */
type Envelope = Readonly<Record<string, string>>;

/** The capabilities that let a server ask its client. All questions reach the client as events. */
const ASKS = { elicitation: null, sampling: null, roots: null } as const;

/**
 * The envelope of a modern request, made from the client's `initialize`. For a client without an event stream it leaves
 * out these capabilities. The server then works without input, or refuses with its own error.
 */
export function envelopeOf({ initialize, logLevel }: LegacySession, events: boolean): Envelope {
  const message = JSON.parse(initialize) as { readonly params?: unknown };
  const params = isObject(message.params) ? message.params : {};
  const members: ReadonlyMap<string, JsonMember> = isObject(message.params)
    ? membersOf(initialize, membersOf(initialize).get('params')!.start)
    : new Map();
  const written = (key: string) => initialize.slice(members.get(key)!.start, members.get(key)!.end);
  const { capabilities, clientInfo } = params;
  return {
    [META.version]: JSON.stringify(MODERN),
    [META.capabilities]: isObject(capabilities)
      ? modernCapabilities(written('capabilities'), capabilities, events)
      : '{}',
    ...(isImplementation(clientInfo) ? { [META.clientInfo]: written('clientInfo') } : {}),
    ...(logLevel === null ? {} : { [META.logLevel]: JSON.stringify(logLevel) }),
  };
}

function modernCapabilities(text: string, capabilities: JsonObject, events: boolean): string {
  const { elicitation } = capabilities;
  // In revisions before elicitation had modes, an empty `elicitation` meant forms.
  const forms = isObject(elicitation) && Object.keys(elicitation).length === 0 ? { elicitation: '{"form":{}}' } : {};
  const change = events ? forms : ASKS;
  const changed = (written: string) =>
    splice(written, [withMembers(written, { start: 0, end: written.length }, change)]);
  try {
    return changed(withoutTasks(text));
  } catch (error) {
    // A key occurs twice. Then the parsed value counts, which the gateway itself uses too.
    if (error instanceof RawJsonError) return changed(JSON.stringify(withoutTaskMembers(capabilities)));
    throw error;
  }
}

function isImplementation(value: unknown): boolean {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['version'] === 'string';
}
