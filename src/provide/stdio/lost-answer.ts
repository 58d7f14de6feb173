import { errorText, readableMembers } from '#wire';
import { ERROR, parseMessage, type Response } from './json-rpc.ts';

/**
 * A line that cannot be read, but is the response to a request. `idText`: id of the request as JSON text; null if it
 * cannot be found.
 */
interface LostAnswer {
  readonly idText: string | null;
}

/**
 * `beginning`: the line, or the part of it that was kept. Returns null for a line that is no response, such as a log
 * message.
 */
export function readLostAnswer(beginning: string): LostAnswer | null {
  const members = readableMembers(beginning);
  if (members.has('method') || !(members.has('result') || members.has('error'))) return null;
  const id = members.get('id') ?? '';
  return { idText: id === '' || id === 'null' ? null : id };
}

/** A response of the TypeScript SDK has its result first and its id last. */
const ID_AT_END = /[,{]\s*"id"\s*:\s*(-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** The id at the end of a response, as JSON text; null if the line does not end with an id. */
export const idAtEnd = (ending: string): string | null => ID_AT_END.exec(ending)?.[1] ?? null;

/** The error in place of a lost answer. null if `idText` is not JSON. */
export function inPlaceOf(idText: string, why: string): Response | null {
  const message = parseMessage(errorText(idText, { code: ERROR.process, message: why }));
  return message?.kind === 'response' ? message : null;
}
