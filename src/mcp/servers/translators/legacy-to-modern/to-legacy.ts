import {
  type Edit,
  isObject,
  membersOf,
  type RequestMessage,
  type ResponseMessage,
  setMember,
  type Span,
  splice,
  withMembers,
} from '#wire';
import { ERROR, LEGACY_METHODS, META } from '../../../wire/revisions.ts';
import { objectContent, toolsWithObjectOutput } from './output-schema.ts';

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
  const { tools, structuredContent } = result as Readonly<Record<string, unknown>>;
  if (method === 'tools/list' && Array.isArray(tools)) {
    const changed = toolsWithObjectOutput(text, members.get('tools')!, tools);
    if (changed !== null) change['tools'] = changed;
  }
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
