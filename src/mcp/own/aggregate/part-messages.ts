import {
  type Edit,
  isObject,
  type JsonRpcMessage,
  type Member,
  type Members,
  membersOf,
  type NotificationMessage,
  parseMessage,
  RawJsonError,
  type ResponseMessage,
  splice,
} from '#wire';
import type { Aggregate } from './aggregate.ts';

/**
 * The id of a server's request in the form for the client: `<service> <id as the server wrote it>`. Different servers
 * may use the same id. With this id alone, any gateway can send the answer to the right server, as long as the session
 * lasts.
 */
function exposeId(service: string, idText: string): string {
  return JSON.stringify(`${service} ${idText}`);
}

/** Splits such an id into the service and the server's id; null for an id that the gateway did not make. */
function splitId(id: unknown): { readonly service: string; readonly idText: string } | null {
  if (typeof id !== 'string') return null;
  // Names of services have no spaces.
  const at = id.indexOf(' ');
  const idText = id.slice(at + 1);
  return at > 0 && isScalar(idText) ? { service: id.slice(0, at), idText } : null;
}

/**
 * Whether a client's text is one JSON string or number. Any other text could break the message that it is inserted in.
 */
function isScalar(text: string): boolean {
  try {
    return ['string', 'number'].includes(typeof JSON.parse(text));
  } catch {
    return false;
  }
}

/** Returns a function that changes messages of a service's part into those for the client of the aggregate. */
export function toPartClient(aggregate: Pick<Aggregate, 'toClient'>, service: string): (text: string) => string {
  return (text) => toClientIds(aggregate.toClient(text, service), service);
}

/**
 * A message of a service's server (JSON text), with ids and progress tokens of the aggregate. A response is unchanged.
 */
function toClientIds(text: string, service: string): string {
  // A quick check, because responses can be long and need no change. The key `method` may be written with an escape.
  if (!/"method"|\\u/.test(text)) return text;
  try {
    const members = membersOf(text);
    const method = textOf(text, members.get('method'));
    if (method === null) return text;
    const edits: Edit[] = [];
    const expose = (member: Member | undefined) => {
      if (member && !'{['.includes(text[member.start]!))
        edits.push({
          start: member.start,
          end: member.end,
          text: exposeId(service, text.slice(member.start, member.end)),
        });
    };
    const params = insideOf(text, members.get('params'));
    if (members.has('id')) {
      expose(members.get('id'));
      expose(insideOf(text, params?.get('_meta'))?.get('progressToken'));
    } else if (method === 'notifications/cancelled') expose(params?.get('requestId'));
    return splice(text, edits);
  } catch (error) {
    if (error instanceof RawJsonError) return text;
    throw error;
  }
}

/** A client's message in the form for the one server that it is for; null if it is for no server. */
export function toPart(
  message: NotificationMessage | ResponseMessage,
): { readonly service: string; readonly message: typeof message } | null {
  const { text, members } = message;
  if (message.kind === 'response') return renamed(message, splitId(message.id), members.get('id'));
  if (message.method !== 'notifications/progress' || !isObject(message.params)) return null;
  return renamed(
    message,
    splitId(message.params['progressToken']),
    membersOf(text, members.get('params')!.start).get('progressToken'),
  );
}

function renamed(
  { text, kind }: JsonRpcMessage,
  to: ReturnType<typeof splitId>,
  place: Member | undefined,
): ReturnType<typeof toPart> {
  if (to === null || !place) return null;
  const message = parseMessage(splice(text, [{ start: place.start, end: place.end, text: to.idText }]));
  return message && message.kind === kind && message.kind !== 'request' ? { service: to.service, message } : null;
}

function insideOf(text: string, member: Member | undefined): Members | null {
  return member && text[member.start] === '{' ? membersOf(text, member.start) : null;
}

const textOf = (text: string, member: Member | undefined): string | null =>
  member && text[member.start] === '"' ? (JSON.parse(text.slice(member.start, member.end)) as string) : null;
