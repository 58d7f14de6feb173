import { errorText, isObject, type JsonObject, type ResponseMessage, resultText } from '#wire';
import type { Received, Send, UpstreamExchange, UpstreamRequest } from '#gateway';
import type { Mailbox } from '../../../turn/mailbox.ts';
import { notificationText, requestText } from '../../../wire/own-messages.ts';
import { ERROR, rankOfLevel } from '../../../wire/revisions.ts';
import { KINDS, listChanged } from '../../../wire/subscriptions.ts';
import { firstResponse } from '../../first-response.ts';
import { sessionHeaders } from '../../legacy-server.ts';
import { POST_HEADERS } from '../../post-headers.ts';
import type { OpenedSession } from './open-session.ts';
import { createResourceSubscriptions, type ResourceSubscriptions } from './resource-subscriptions.ts';
import { openServerStream, type ServerStream, type StreamEnd } from './server-stream.ts';
import type { SessionCall } from './session-call.ts';

/**
 * A session at a legacy server that the gateway opened in one account's name, for all of its requests there that
 * declare the same.
 */
export interface UpstreamSession extends OpenedSession, ResourceSubscriptions {
  nextId(): number;
  /** Marks it as used, until the function that it returns is called. */
  enter(): () => void;
  /** Gives a call the messages of the session's own stream that belong to it. Returns how to end that. */
  register(call: SessionCall): () => void;
  /** Posts a message as it is. */
  post(text: string, send: Send, more?: Pick<UpstreamRequest, 'patient'>): UpstreamExchange;
  /** Goes on with a stream that ended, behind an event. */
  resume(lastEventId: string, send: Send): UpstreamExchange;
  /** Posts a message whose fate nobody waits for. */
  tell(text: string): void;
  /** Tells the server that nobody waits for a request any more. */
  cancel(id: number): void;
  /** Makes the server send log messages of this level and above. */
  logFrom(level: string): Promise<void>;
  /** Opens the session's own stream. False where the server has none. */
  openStream(): Promise<boolean>;
  /**
   * Puts notifications of changes into `box`, wherever they come, until the server can tell of no more. Returns how
   * to end that.
   */
  onChange(box: Mailbox<Received>): () => void;
  /** Passes on a notification of a change; false for any other message. */
  changed(received: Received): boolean;
  /** Closes the session's own stream. */
  closeStream(): void;
  /** Deletes the session at the server. Resolves when that is done, or failed. */
  end(): Promise<void>;
}

interface UpstreamSessionOptions extends OpenedSession {
  /** Sends what belongs to no call. */
  readonly send: Send;
  readonly bytesMax: number;
  readonly onEntered: () => void;
  /** Told when nobody uses it any more. */
  readonly onLeft: () => void;
  /** Told when the server does not know it any more. */
  readonly onLost: () => void;
}

const CHANGES: ReadonlySet<string> = new Set([...KINDS.map(listChanged), 'notifications/resources/updated']);

export function createUpstreamSession(options: UpstreamSessionOptions): UpstreamSession {
  const { upstreamId, revision, capabilities, send, bytesMax } = options;
  const headers = sessionHeaders(options);
  const calls = new Set<SessionCall>();
  const listeners = new Set<Mailbox<Received>>();
  let users = 0;
  let lastId = 0;
  let logRank = Infinity;
  let stream: ServerStream | null = null;
  let hasNoStream = false;

  const post: UpstreamSession['post'] = (text, by, more = {}) =>
    by({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...headers }, body: text, ...more });
  const discarded = ({ head }: UpstreamExchange) => head.then((reply) => reply.discard(), ignore);
  const tell = (text: string) => void discarded(post(text, send));
  const nextId = () => ++lastId;
  async function ask(method: string, params: JsonObject): Promise<ResponseMessage | null> {
    return firstResponse(await post(requestText(nextId(), method, params), send).head, bytesMax);
  }

  function changed(received: Received): boolean {
    const { message } = received;
    if (message.kind !== 'notification' || !CHANGES.has(message.method)) return false;
    for (const box of listeners) box.offer(received, message.text.length);
    return true;
  }

  function streamEnded(why: StreamEnd): void {
    hasNoStream = why !== 'away';
    stream = null;
    if (why === 'lost') options.onLost();
    for (const box of listeners) box.end();
  }

  const closeStream = () => {
    stream?.close();
    stream = null;
  };

  return {
    upstreamId,
    revision,
    capabilities,
    nextId,
    enter() {
      users++;
      options.onEntered();
      let entered = true;
      return () => {
        if (!entered) return;
        entered = false;
        if (--users === 0) options.onLeft();
      };
    },
    register(call) {
      calls.add(call);
      return () => void calls.delete(call);
    },
    post,
    resume: (lastEventId, by) =>
      by({
        method: 'GET',
        path: '',
        headers: { accept: 'text/event-stream', ...headers, 'last-event-id': lastEventId },
        body: null,
        patient: true,
      }),
    tell,
    cancel: (requestId) => tell(notificationText('notifications/cancelled', { requestId, reason: 'the client left' })),
    async logFrom(level) {
      const rank = rankOfLevel(level);
      // Calls share the level: the lowest that one of them wanted stays, and each drops what is below its own.
      if (!isObject(capabilities['logging']) || logRank <= rank) return;
      logRank = rank;
      // A server that takes no level logs as it likes.
      await ask('logging/setLevel', { level }).catch(ignore);
    },
    async openStream() {
      if (hasNoStream) return false;
      stream ??= openServerStream({
        send,
        headers,
        bytesMax,
        onMessage(received) {
          if (!changed(received)) passToCalls(received, calls, tell);
        },
        onEnd: streamEnded,
      });
      return stream.open;
    },
    onChange(box) {
      listeners.add(box);
      return () => void listeners.delete(box);
    },
    changed,
    ...createResourceSubscriptions(ask),
    closeStream,
    async end() {
      closeStream();
      if (upstreamId !== null) await discarded(send({ method: 'DELETE', path: '', headers, body: null }));
    },
  };
}

/** Gives a message of the session's own stream to the calls that it may be about. */
function passToCalls(received: Received, calls: ReadonlySet<SessionCall>, tell: (text: string) => void): void {
  const { message } = received;
  if (message.kind === 'response') return;
  if (message.kind === 'request') {
    const { method, idText } = message;
    if (method === 'ping') return tell(resultText(idText, '{}'));
    // A server that asks outside of a call's stream means, most likely, the newest call that can be asked.
    const call = [...calls].findLast((one) => one.canBeAsked);
    if (call) return call.push(received);
    return tell(
      errorText(idText, { code: ERROR.methodNotFound, message: 'No request runs whose client can be asked' }),
    );
  }
  if (message.method === 'notifications/progress')
    return [...calls].find((call) => call.id === message.params?.['progressToken'])?.push(received);
  // A cancellation may be about a question in any of them, and each call knows its own. Any other notification
  // belongs to the only call; with several, nobody can tell to which.
  if (message.method === 'notifications/cancelled' || calls.size === 1) for (const call of calls) call.push(received);
}

const ignore = () => {};
