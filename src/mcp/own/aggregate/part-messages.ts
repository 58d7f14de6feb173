import { type Edit, isObject, type JsonMember, type Members, membersOf, RawJsonError, splice } from '#wire';
import { type JsonRpcMessage, type NotificationMessage, parseMessage, type ResponseMessage } from '#json-rpc';
import type { SessionMessages } from '../../http/session-messages.ts';
import type { OneWayMessage } from '../../http/session-transport.ts';
import type { RequestContext } from '../../call/stateless.ts';
import { cancelledId, type RunningRequests, type CancelNotes } from '../../request/cancellation.ts';
import { ofAll, type Parts } from './parts.ts';
import type { Scope } from './tables.ts';
import type { AggregateSession, AggregateSessions } from './sessions.ts';
import type { Aggregate } from './aggregate.ts';

interface TellPartsDeps {
  readonly sessions: Pick<AggregateSessions, 'change'>;
  readonly parts: Pick<Parts, 'known'>;
  readonly messages: Pick<SessionMessages, 'tell'>;
  readonly cancels: CancelNotes;
  readonly onError: (error: unknown) => void;
  /** Running requests of clients, each with its service; null for one that asks an agent or a model. */
  readonly running: RunningRequests<string | null>;
}

/** Passes a notification or a response of a client to the parts that it is for. Drops a message that is for no part. */
type TellParts = (
  session: AggregateSession,
  message: OneWayMessage,
  scope: Scope,
  context: RequestContext,
) => Promise<void>;

export function createTellParts({ sessions, parts, messages, cancels, onError, running }: TellPartsDeps): TellParts {
  async function tellPart(
    session: AggregateSession,
    service: string,
    message: OneWayMessage,
    context: RequestContext,
  ): Promise<void> {
    // Another gateway may have opened the part.
    if (!session.parts.has(service)) await sessions.change(session);
    const part = await parts.known(session, service);
    try {
      if (part) await messages.tell(part.session, message, context);
    } finally {
      part?.leave();
    }
  }

  const tellAll = (
    session: AggregateSession,
    services: readonly string[],
    message: OneWayMessage,
    context: RequestContext,
  ) => ofAll(services, (service) => tellPart(session, service, message, context), onError);

  return async (session, message, scope, context) => {
    if (message.kind === 'response' || message.method === 'notifications/progress') {
      const to = toPart(message);
      if (to && scope.includes(to.service)) await tellPart(session, to.service, to.message, context);
      return;
    }
    const isCancel = message.method === 'notifications/cancelled';
    if (!isCancel && message.method !== 'notifications/roots/list_changed') return;
    const id = isCancel ? cancelledId(message) : undefined;
    const one = isCancel ? running.find(session.id, id) : undefined;
    if (one) {
      one.cancel();
      return tellAll(session, one.request === null ? [] : [one.request], message, context);
    }
    // A request that is unknown here may run at another gateway, and parts may be open there too. One that asks an
    // agent or a model has no part.
    if (isCancel) await cancels.note(session, id);
    await sessions.change(session);
    await tellAll(session, openParts(session, scope), message, context);
  };
}

export const openParts = (session: AggregateSession, scope: Scope): readonly string[] =>
  [...session.parts.keys()].filter((service) => scope.includes(service));

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
    const expose = (member: JsonMember | undefined) => {
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
function toPart(
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
  place: JsonMember | undefined,
): ReturnType<typeof toPart> {
  if (to === null || !place) return null;
  const message = parseMessage(splice(text, [{ start: place.start, end: place.end, text: to.idText }]));
  return message && message.kind === kind && message.kind !== 'request' ? { service: to.service, message } : null;
}

function insideOf(text: string, member: JsonMember | undefined): Members | null {
  return member && text[member.start] === '{' ? membersOf(text, member.start) : null;
}

const textOf = (text: string, member: JsonMember | undefined): string | null =>
  member && text[member.start] === '"' ? (JSON.parse(text.slice(member.start, member.end)) as string) : null;
