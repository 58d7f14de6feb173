import { isObject } from '#wire';
import type { NotificationMessage, Received } from '#json-rpc';
import { eventBytes, type ServerPlace, type McpRequest } from '../request/mcp-request.ts';
import { createMailbox, type Mailbox, orAbort } from '../request/waiting.ts';
import { withMeta } from '../wire/meta.ts';
import { META } from '../wire/revisions.ts';
import { acknowledgement, listChanged, listenEnd, readSubscribed } from '../wire/own-messages.ts';
import type { UpstreamSessions } from '../servers/upstream-sessions.ts';
import type { UpstreamSession } from '../servers/upstream-session.ts';

/** Bounds for changes that wait because the client does not read. */
const CHANGES_BOUNDS = { itemsMax: 1_000, charsMax: 4 * 1024 * 1024 } as const;

/**
 * `subscriptions/listen` in front of a legacy server. Yields an acknowledgement of the changes that the server will
 * report, then the changes from the session's own stream. Returns the response when the server can report no more.
 */
export async function* listen(
  mcpRequest: McpRequest,
  { signal, ...place }: ServerPlace,
  sessions: UpstreamSessions,
): AsyncGenerator<Uint8Array, string, undefined> {
  const { idText, params } = mcpRequest.message;
  const { session, box, hasStream, leave } = await enterListening(
    () => sessions.sessionOf(mcpRequest, { signal, ...place }),
    signal,
  );
  const stop = () => box.fail(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  const event = (text: string) =>
    eventBytes(withMeta(mcpRequest.toClient(text), 'params', { [META.subscriptionId]: idText }));
  const uris = new Set<string>();
  try {
    if (signal.aborted) stop();
    const filter = readSubscribed(params);
    const kinds = hasStream ? filter.kinds.filter((kind) => can(session, kind, 'listChanged')) : [];
    if (hasStream && can(session, 'resources', 'subscribe')) await subscribe(session, filter.uris, uris, signal);
    yield event(acknowledgement({ kinds, uris: [...uris] }));
    if (!hasStream) box.end();
    for (;;) {
      const received = await box.take();
      if (received === null || typeof received === 'symbol') break;
      const message = received.message as NotificationMessage;
      if (kinds.some((kind) => listChanged(kind) === message.method) || isOfAny(uris, message.params?.['uri']))
        yield event(message.text);
    }
    return listenEnd(idText);
  } finally {
    signal.removeEventListener('abort', stop);
    for (const uri of uris) session.unsubscribe(uri);
    leave();
  }
}

/**
 * Whether the client subscribed to a URI or to a resource above it. The URI of an update "might be a sub-resource of
 * the one that the client actually subscribed to" (2025-11-25, ResourceUpdatedNotification).
 */
function isOfAny(uris: ReadonlySet<string>, uri: unknown): boolean {
  if (typeof uri !== 'string') return false;
  if (uris.has(uri)) return true;
  for (const one of uris) if (uri.startsWith(one) && (one.endsWith('/') || /[/?#]/.test(uri[one.length]!))) return true;
  return false;
}

interface Entered {
  readonly session: UpstreamSession;
  readonly box: Mailbox<Received>;
  readonly hasStream: boolean;
  leave(): void;
}

/** Enters the session. If its server no longer knows the session, enters a new one. */
async function enterListening(sessionNow: () => Promise<UpstreamSession>, signal: AbortSignal): Promise<Entered> {
  const first = await enter(await orAbort(sessionNow(), signal), signal);
  if (first.hasStream) return first;
  try {
    const session = await orAbort(sessionNow(), signal);
    if (session === first.session) return first;
    first.leave();
    return await enter(session, signal);
  } catch (error) {
    first.leave();
    throw error;
  }
}

async function enter(session: UpstreamSession, signal: AbortSignal): Promise<Entered> {
  const leaveSession = session.enter();
  const box = createMailbox<Received>(CHANGES_BOUNDS);
  const forget = session.onChange(box);
  const leave = () => {
    forget();
    leaveSession();
  };
  try {
    return { session, box, hasStream: await orAbort(session.openStream(), signal), leave };
  } catch (error) {
    leave();
    throw error;
  }
}

const can = ({ capabilities }: UpstreamSession, member: string, what: string) =>
  isObject(capabilities[member]) && capabilities[member][what] === true;

/**
 * Subscribes to the wanted URIs, and keeps those that the server accepted in `uris`. A URI is in `uris` during its
 * request too, so that it is unsubscribed if the client leaves then.
 */
async function subscribe(
  session: UpstreamSession,
  filter: readonly string[],
  uris: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const uri of filter) {
    uris.add(uri);
    if (await orAbort(session.subscribe(uri), signal)) continue;
    uris.delete(uri);
    session.unsubscribe(uri);
  }
}
