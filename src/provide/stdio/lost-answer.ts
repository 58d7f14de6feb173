import { errorText, readableElements, readableMembers, setMember, splice } from '#wire';
import { ERROR, errorCodeOf, parseMessage, type Message, type Response } from './json-rpc.ts';

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

/** A response of the TypeScript SDK has its result first and its id last. It may be the last one of a batch. */
const ID_AT_END =
  /[,{]\s*"id"\s*:\s*(-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\]?\s*$/;

/** The id at the end of a response, as JSON text; null if the line does not end with an id. */
export const idAtEnd = (ending: string): string | null => ID_AT_END.exec(ending)?.[1] ?? null;

/**
 * The messages in the beginning of a line that is too long, if the line is a batch: those that are complete, and the
 * beginning of the one that is not. For any other line only its beginning.
 */
export function beginningOfBatch(beginning: string): { readonly complete: readonly string[]; readonly cut: string } {
  const elements = /^\s*\[\s*\{/.test(beginning) ? readableElements(beginning) : [];
  const first = readableMembers(elements[0] ?? '');
  // A tool may also print an array of its own data, whose ids are not those of requests.
  const isBatch = first.has('jsonrpc') || (elements.length === 1 && (first.has('result') || first.has('error')));
  if (!isBatch) return { complete: [], cut: beginning };
  return { complete: elements.slice(0, -1), cut: elements.at(-1) ?? beginning };
}

/**
 * Whether a message says that the server could not parse a request. Such an error has no id. Other errors without an id
 * may be about a notification: some servers refuse `notifications/initialized`.
 */
export const saysUnparsed = (message: Message): message is Response =>
  message.kind === 'response' && (message.value['id'] ?? null) === null && errorCodeOf(message) === ERROR.parse;

/** The response with another id, as JSON text. */
export function withId({ text }: Response, idText: string): Response | null {
  const message = parseMessage(splice(text, [setMember(text, 0, 'id', idText)]));
  return message?.kind === 'response' ? message : null;
}

/** The error in place of a lost answer. null if `idText` is not JSON. */
export function inPlaceOf(idText: string, why: string): Response | null {
  const message = parseMessage(errorText(idText, { code: ERROR.process, message: why }));
  return message?.kind === 'response' ? message : null;
}
