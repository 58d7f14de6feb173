import { interpretedFields, findAmbiguousKey, ambiguousKeyFault, type AmbiguousKeyFault } from './ambiguous-keys.ts';
import { parseMessage, type JsonRpcMessage, type RawMessage } from './message.ts';

const PARTS = {
  request: ['jsonrpc', 'id', 'method', 'params'],
  notification: ['jsonrpc', 'method', 'params'],
  response: ['jsonrpc', 'id', 'result', 'error'],
} as const;

/** The names of the members of JSON-RPC messages. */
export const ENVELOPE = interpretedFields([...new Set(Object.values(PARTS).flat())]);

/** A message that a server could read differently from the gateway. */
interface Ambiguous {
  readonly kind: 'ambiguous';
  /** The id of a request as JSON text, else `null`. */
  readonly idText: string;
  readonly where: 'envelope' | 'params';
  readonly fault: AmbiguousKeyFault;
}

/**
 * Reads a client's message by the rules of parseMessage. The result is safe to pass on as text. The message is
 * ambiguous if the name of a member looks like a name of the envelope, or if `faultOf` finds such a name in the
 * parameters. All other unknown members of the envelope are removed from the text.
 */
export function readClientMessage(
  text: string,
  faultOf: (params: Readonly<Record<string, unknown>>) => AmbiguousKeyFault | null,
): JsonRpcMessage | Ambiguous | null | undefined {
  const message = parseMessage(text);
  if (!message) return message;
  const idText = message.kind === 'request' ? message.idText : 'null';
  const names = findAmbiguousKey(message.members.keys(), ENVELOPE);
  if (names !== null) return { kind: 'ambiguous', idText, where: 'envelope', fault: ambiguousKeyFault('', names) };
  const params = message.kind === 'response' ? undefined : message.params;
  const fault = params === undefined ? null : faultOf(params);
  return fault === null ? envelopeAlone(message) : { kind: 'ambiguous', idText, where: 'params', fault };
}

function envelopeAlone(message: JsonRpcMessage): JsonRpcMessage {
  const parts: readonly string[] = PARTS[message.kind];
  for (const name of message.members.keys()) if (!parts.includes(name)) return parseMessage(rebuilt(message, parts))!;
  return message;
}

function rebuilt({ text, members }: RawMessage, parts: readonly string[]): string {
  const written: string[] = [];
  for (const name of parts) {
    const member = members.get(name);
    if (member) written.push(`"${name}":${text.slice(member.start, member.end)}`);
  }
  return `{${written.join(',')}}`;
}
