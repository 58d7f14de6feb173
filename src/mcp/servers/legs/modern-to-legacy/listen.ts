import { isObject, type JsonObject, type NotificationMessage, resultText } from '#wire';
import type { Received } from '#gateway';
import { eventBytes } from '../../../turn/events.ts';
import { createMailbox, type Mailbox } from '../../../turn/mailbox.ts';
import { withMeta } from '../../../wire/meta.ts';
import { notificationText } from '../../../wire/own-messages.ts';
import { META } from '../../../wire/revisions.ts';
import type { Place, Turn } from '../../../turn/turn.ts';
import type { UpstreamSessions } from '../../upstream-sessions.ts';
import { orAbort } from '../../../turn/waiting.ts';
import type { UpstreamSession } from './upstream-session.ts';

/** Resources of one request; a longer list is cut, as the acknowledgement shows. */
const RESOURCES_MAX = 1_000;
/** Changes that wait for a client that does not read. */
const CHANGES_BOUNDS = { itemsMax: 1_000, charsMax: 4 * 1024 * 1024 } as const;

/** Lists whose changes a client may hear of: the client's word, the server's capability, the notification. */
const LISTS = [
  ['toolsListChanged', 'tools', 'notifications/tools/list_changed'],
  ['promptsListChanged', 'prompts', 'notifications/prompts/list_changed'],
  ['resourcesListChanged', 'resources', 'notifications/resources/list_changed'],
] as const;

/**
 * `subscriptions/listen` in front of a legacy server: an acknowledgement of what the server will tell of, then the
 * changes as they come on the session's own stream. Returns the response when the server can tell of no more.
 */
export async function* listen(
  turn: Turn,
  { signal, ...place }: Place,
  sessions: UpstreamSessions,
): AsyncGenerator<Uint8Array, string, undefined> {
  const { idText, params } = turn.message;
  const { session, box, heard, leave } = await enterListening(() => sessions.of(turn, { signal, ...place }), signal);
  const stop = () => box.fail(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  const event = (text: string) =>
    eventBytes(withMeta(turn.toClient(text), 'params', { [META.subscriptionId]: idText }));
  const uris = new Set<string>();
  try {
    if (signal.aborted) stop();
    const wanted = isObject(params?.['notifications']) ? params['notifications'] : {};
    const lists = heard ? listsOf(session, wanted) : [];
    if (heard && can(session, 'resources', 'subscribe')) await subscribe(session, wanted, uris, signal);
    const agreed = {
      ...Object.fromEntries(lists.map(([key]) => [key, true])),
      ...(uris.size > 0 ? { resourceSubscriptions: [...uris] } : {}),
    };
    yield event(notificationText('notifications/subscriptions/acknowledged', { notifications: agreed }));
    if (!heard) box.end();
    for (;;) {
      const received = await box.take();
      if (received === null || typeof received === 'symbol') break;
      const message = received.message as NotificationMessage;
      if (lists.some(([, , method]) => method === message.method) || uris.has(String(message.params?.['uri'])))
        yield event(message.text);
    }
    return resultText(idText, `{"resultType":"complete","_meta":{"${META.subscriptionId}":${idText}}}`);
  } finally {
    signal.removeEventListener('abort', stop);
    for (const uri of uris) session.unsubscribe(uri);
    leave();
  }
}

interface Entered {
  readonly session: UpstreamSession;
  /** Gets the changes. */
  readonly box: Mailbox<Received>;
  /** Whether the server has a stream for it. */
  readonly heard: boolean;
  leave(): void;
}

/** Enters the session, or a new one where its server turns out not to know it any more. */
async function enterListening(sessionNow: () => Promise<UpstreamSession>, signal: AbortSignal): Promise<Entered> {
  const first = await enter(await orAbort(sessionNow(), signal), signal);
  if (first.heard) return first;
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
    return { session, box, heard: await orAbort(session.openStream(), signal), leave };
  } catch (error) {
    leave();
    throw error;
  }
}

const can = ({ capabilities }: UpstreamSession, of: string, what: string) =>
  isObject(capabilities[of]) && capabilities[of][what] === true;

const listsOf = (session: UpstreamSession, wanted: JsonObject) =>
  LISTS.filter(([key, of]) => wanted[key] === true && can(session, of, 'listChanged'));

/** Adds the URIs that the server took to `uris`; also the one that it is asked for when the client leaves. */
async function subscribe(
  session: UpstreamSession,
  wanted: JsonObject,
  uris: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const asked = Array.isArray(wanted['resourceSubscriptions']) ? wanted['resourceSubscriptions'] : [];
  for (const uri of new Set(asked.slice(0, RESOURCES_MAX))) {
    if (typeof uri !== 'string') continue;
    uris.add(uri);
    if (await orAbort(session.subscribe(uri), signal)) continue;
    uris.delete(uri);
    session.unsubscribe(uri);
  }
}
