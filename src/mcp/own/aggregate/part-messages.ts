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
 * The id of a server's request as its client gets it: `<service> <id as it was written>`. Servers choose the same
 * ids. By this id alone the answer finds its server: at any gateway, for as long as the session lasts.
 */
function exposeId(service: string, idText: string): string {
  return JSON.stringify(`${service} ${idText}`);
}

/** The service and the id as it was written; null for an id that the gateway did not give. */
function splitId(id: unknown): { readonly service: string; readonly idText: string } | null {
  if (typeof id !== 'string') return null;
  // No name of a service has a space.
  const at = id.indexOf(' ');
  const idText = id.slice(at + 1);
  return at > 0 && isScalar(idText) ? { service: id.slice(0, at), idText } : null;
}

/** Whether a client's text is a string or a number, and nothing that would break out of its place. */
function isScalar(text: string): boolean {
  try {
    return ['string', 'number'].includes(typeof JSON.parse(text));
  } catch {
    return false;
  }
}

/** Changes messages from the part for a service to what the client of the aggregate sees. */
export function toPartClient(aggregate: Pick<Aggregate, 'toClient'>, service: string): (text: string) => string {
  return (text) => toClientIds(aggregate.toClient(text, service), service);
}

/**
 * A message of a service's server (JSON text) with ids and progress tokens of the aggregate. Responses stay as they
 * are.
 */
function toClientIds(text: string, service: string): string {
  // Responses are the long ones. An escape could hide the key.
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

/** A client's message to one server, as that server knows it; null where it is for no server. */
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
