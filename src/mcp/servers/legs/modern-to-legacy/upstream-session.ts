import { errorText, isObject, type JsonObject, type RequestMessage, type ResponseMessage, resultText } from '#wire';
import { readReply, type Received, type Send, type UpstreamExchange, type UpstreamRequest } from '#gateway';
import type { Mailbox } from '../../../turn/mailbox.ts';
import { ERROR, LOG_LEVELS } from '../../../wire/revisions.ts';
import { createEar, type Ear } from './ear.ts';
import { POST_HEADERS, sessionHeaders, type OpenedSession } from './open-session.ts';
import type { SessionCall } from './session-call.ts';

/**
 * A session at a legacy server that the gateway opened in one account's name, for all of its requests there that
 * declare the same.
 */
export interface UpstreamSession extends OpenedSession {
  nextId(): number;
  /** Marks it as used, until the function that it returns is called. */
  enter(): () => void;
  /** What the server says on the session's own stream goes to the calls in it. Returns how to end that. */
  register(call: SessionCall): () => void;
  /** Posts a message as it is. */
  post(text: string, send: Send, more?: Pick<UpstreamRequest, 'patient'>): UpstreamExchange;
  /** Goes on with a stream that ended, behind an event. */
  resume(lastEventId: string, send: Send): UpstreamExchange;
  /** Sends a request of the gateway's own. Rejects with UpstreamFailure. */
  ask(method: string, params: JsonObject): Promise<ResponseMessage | null>;
  /** Posts a message whose fate nobody waits for. */
  tell(text: string): void;
  /** Tells the server that nobody waits for a request any more. */
  cancel(id: number): void;
  /** Makes the server send log messages of this level and above. */
  logFrom(level: string): Promise<void>;
  /** Listens to the session's own stream. False where the server has none. */
  hear(): Promise<boolean>;
  /**
   * Notifications of changes go to `box`, wherever they come, until the server can tell of no more. Returns how to
   * end that.
   */
  onChange(box: Mailbox<Received>): () => void;
  /** Passes on a notification of a change; false for any other. */
  changed(received: Received): boolean;
  /** Counts the listeners of a resource. Resolves with whether the server tells of it. */
  subscribe(uri: string): Promise<boolean>;
  unsubscribe(uri: string): void;
  /** Closes its stream where nobody uses it. */
  rest(): void;
  /** Deletes it at the server. Resolves when that is done, or failed. */
  end(): Promise<void>;
}

export interface UpstreamSessionOptions extends OpenedSession {
  /** For what belongs to no call. */
  readonly send: Send;
  readonly bytesMax: number;
  readonly entered: () => void;
  /** Nobody uses it any more. */
  readonly left: () => void;
  /** The server does not know it any more. */
  readonly lost: () => void;
}

export const CHANGES: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
]);

/** What may wait for a client that does not read. */
const CHANGES_MAX = 1_000;
/** Characters of it. */
const CHANGES_CHARS_MAX = 4 * 1024 * 1024;

export function createUpstreamSession(options: UpstreamSessionOptions): UpstreamSession {
  const { id, revision, capabilities, send, bytesMax } = options;
  const headers = sessionHeaders(options);
  const calls = new Set<SessionCall>();
  /** With how many characters wait for each. */
  const listeners = new Map<Mailbox<Received>, number>();
  const subscribed = new Map<string, { count: number; readonly done: Promise<boolean> }>();
  let users = 0;
  let lastId = 0;
  let level: string | null = null;
  let ear: Ear | null = null;
  let deaf = false;

  const discard = ({ head }: UpstreamExchange) => head.then((reply) => reply.discard(), ignore);

  function heard(received: Received): void {
    const { message } = received;
    if (message.kind === 'response') return;
    if (message.kind === 'request') return heardRequest(received, message);
    if (session.changed(received)) return;
    const { progressToken } = message.params ?? {};
    if (message.method === 'notifications/progress')
      return [...calls].find((call) => call.id === progressToken)?.push(received);
    // It may be about what the server asked of any of them, and each knows its own.
    if (message.method === 'notifications/cancelled') for (const call of calls) call.push(received);
    // What else is said belongs to the one call there is, or nobody can tell to which.
    else if (calls.size === 1) for (const call of calls) call.push(received);
  }

  /** A server that asks outside of a call's stream means, most likely, the newest one that can be asked. */
  function heardRequest(received: Received, { method, idText }: RequestMessage): void {
    if (method === 'ping') return session.tell(resultText(idText, '{}'));
    const call = [...calls].findLast((one) => one.canBeAsked);
    if (call) call.push(received);
    else
      session.tell(
        errorText(idText, { code: ERROR.methodNotFound, message: 'No request runs that its client could be asked in' }),
      );
  }

  const session: UpstreamSession = {
    id,
    revision,
    capabilities,
    nextId: () => ++lastId,
    enter() {
      users++;
      options.entered();
      let entered = true;
      return () => {
        if (!entered) return;
        entered = false;
        if (--users === 0) options.left();
      };
    },
    register(call) {
      calls.add(call);
      return () => void calls.delete(call);
    },
    post: (text, by, more = {}) =>
      by({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...headers }, body: text, ...more }),
    resume: (lastEventId, by) =>
      by({
        method: 'GET',
        path: '',
        headers: { accept: 'text/event-stream', ...headers, 'last-event-id': lastEventId },
        body: null,
        patient: true,
      }),
    async ask(method, params) {
      const exchange = session.post(JSON.stringify({ jsonrpc: '2.0', id: session.nextId(), method, params }), send);
      const reply = await exchange.head;
      try {
        for await (const { message } of readReply(reply, bytesMax)) if (message?.kind === 'response') return message;
        return null;
      } finally {
        reply.discard();
      }
    },
    tell: (text) => void discard(session.post(text, send)),
    cancel: (requestId) =>
      session.tell(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId, reason: 'the client left' },
        }),
      ),
    async logFrom(wanted) {
      const rank = LOG_LEVELS.indexOf(wanted as (typeof LOG_LEVELS)[number]);
      // Calls share the level: the lowest that one of them wanted stays, and each drops what is below its own.
      if (
        !isObject(capabilities['logging']) ||
        (level !== null && LOG_LEVELS.indexOf(level as (typeof LOG_LEVELS)[number]) <= rank)
      )
        return;
      level = wanted;
      // A server that takes no level logs as it likes.
      await session.ask('logging/setLevel', { level: wanted }).catch(ignore);
    },
    async hear() {
      if (deaf) return false;
      ear ??= createEar({
        send,
        headers,
        bytesMax,
        heard,
        deaf(why) {
          deaf = why !== 'away';
          ear = null;
          if (why === 'lost') options.lost();
          for (const box of listeners.keys()) box.end();
        },
      });
      return ear.open;
    },
    onChange(box) {
      listeners.set(box, 0);
      return () => void listeners.delete(box);
    },
    changed(received) {
      if (received.message.kind !== 'notification' || !CHANGES.has(received.message.method)) return false;
      const { length } = received.message.text;
      for (const [box, waiting] of listeners) {
        if (box.length >= CHANGES_MAX || waiting + length > CHANGES_CHARS_MAX) continue;
        listeners.set(box, waiting + length);
        void box.put(received).then(() => {
          const left = listeners.get(box);
          if (left !== undefined) listeners.set(box, left - length);
        });
      }
      return true;
    },
    subscribe(uri) {
      const known = subscribed.get(uri);
      if (known) known.count++;
      const done =
        known?.done ??
        session.ask('resources/subscribe', { uri }).then(
          (answer) => answer?.result !== undefined,
          () => false,
        );
      if (!known) subscribed.set(uri, { count: 1, done });
      return done;
    },
    unsubscribe(uri) {
      const known = subscribed.get(uri);
      if (!known || --known.count > 0) return;
      subscribed.delete(uri);
      session.ask('resources/unsubscribe', { uri }).catch(ignore);
    },
    rest() {
      ear?.close();
      ear = null;
    },
    async end() {
      session.rest();
      if (id !== null) await discard(send({ method: 'DELETE', path: '', headers, body: null }));
    },
  };
  return session;
}

/** Nobody waits for it. */
const ignore = () => {};
