import { actedOn, findLookAlike, lookAlikeFault, type LookAlikeFault } from './look-alikes.ts';
import { parseMessage, type JsonRpcMessage, type RawMessage } from './message.ts';

const PARTS = {
  request: ['jsonrpc', 'id', 'method', 'params'],
  notification: ['jsonrpc', 'method', 'params'],
  response: ['jsonrpc', 'id', 'result', 'error'],
} as const;

/** Names of the members that JSON-RPC has. */
export const ENVELOPE = actedOn([...new Set(Object.values(PARTS).flat())]);

/** A message that a server could read otherwise than the gateway does. */
interface Ambiguous {
  readonly kind: 'ambiguous';
  /** The id of a request as it is written, else `null`. */
  readonly idText: string;
  readonly where: 'envelope' | 'params';
  readonly fault: LookAlikeFault;
}

/**
 * A message of a client, by the rules of parseMessage, which is safe to pass on as text. A member whose name is
 * nearly one that counts makes it ambiguous: one of the envelope, and one that `faultOf` finds in the parameters.
 * Other members beside those of the envelope are left out of the text.
 */
export function readClientMessage(
  text: string,
  faultOf: (params: Readonly<Record<string, unknown>>) => LookAlikeFault | null,
): JsonRpcMessage | Ambiguous | null | undefined {
  const message = parseMessage(text);
  if (!message) return message;
  const idText = message.kind === 'request' ? message.idText : 'null';
  const names = findLookAlike(message.members.keys(), ENVELOPE);
  if (names !== null) return { kind: 'ambiguous', idText, where: 'envelope', fault: lookAlikeFault('', names) };
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
