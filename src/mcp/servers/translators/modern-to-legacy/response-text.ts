import { type Edit, isObject, membersOf, type ResponseMessage, splice, withMembers } from '#wire';
import { ERROR, MODERN_METHODS } from '../../../wire/revisions.ts';
import type { McpRequest } from '../../../request/mcp-request.ts';
import { URL_ELICITATION_REQUIRED } from './url-elicitation.ts';

/** A legacy server does not say how long its answers are valid, so they expire at once. */
const CACHE = { ttlMs: '0', cacheScope: '"private"' } as const;

/** Codes that the modern revision no longer has, with the codes that replace them. */
const CODES: ReadonlyMap<number, number> = new Map([
  [ERROR.resourceNotFound, ERROR.invalidParams],
  [URL_ELICITATION_REQUIRED, ERROR.internal],
]);

/**
 * A legacy server's response as the response to the request of `turn`, with that request's id. For a modern client, it
 * adds the members that results must have and replaces error codes. Every other character stays. Null if the result is
 * not an object.
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
