import { errorText, type ResponseMessage, resultText, type Received } from '#json-rpc';
import { isObject, type JsonObject, UpstreamFailure } from '#wire';
import { TransientMap } from '#maps';
import type { Send, UpstreamExchange, UpstreamRequest } from '#call';
import type { Mailbox } from '../request/waiting.ts';
import { notificationText, requestText, KINDS, listChanged } from '../wire/own-messages.ts';
import { ERROR, rankOfLevel, isLegacyRevision, LEGACY } from '../wire/revisions.ts';
import {
  firstResponse,
  sessionHeaders,
  POST_HEADERS,
  initializeAt,
  postInitialized,
  type ServerSession,
} from './legacy-server.ts';
import { openServerStream, type ServerStream, type StreamEnd, type StreamHeads } from './server-stream.ts';

export interface RegisteredCall {
  /** The id of the request in its session, which is also its progress token. */
  readonly id: number;
  readonly canBeAsked: boolean;
  push(received: Received): void;
}

/**
 * A session at a legacy server that the gateway opened for one account. All requests of the account there that declare
 * the same client share it.
 */
export interface UpstreamSession extends OpenedSession, ResourceSubscriptions {
  nextId(): number;
  /** Marks the session as used until the returned function is called. */
  enter(): () => void;
  /** Gives a call those messages of the session's own stream that belong to it. The returned function ends this. */
  register(call: RegisteredCall): () => void;
  post(text: string, send: Send, more?: Pick<UpstreamRequest, 'patient'>): UpstreamExchange;
  resume(lastEventId: string, send: Send): UpstreamExchange;
  tell(text: string): void;
  /** Tells the server that nobody needs the response to a request any more. Resolves to whether it took that. */
  cancel(id: number): Promise<boolean>;
  logFrom(level: string): Promise<void>;
  /** Opens the session's own stream. Resolves to false if the server has none. */
  openStream(): Promise<boolean>;
  /**
   * Puts notifications of changes into `box`, from every stream, until the server can report no more. The returned
   * function ends this.
   */
  onChange(box: Mailbox<Received>): () => void;
  /** Passes on a notification of a change. Returns false for any other message. */
  changed(received: Received): boolean;
  closeStream(): void;
  end(): Promise<void>;
}

interface UpstreamSessionOptions extends OpenedSession {
  readonly send: Send;
  readonly bytesMax: number;
  readonly heads: StreamHeads;
  readonly onEntered: () => void;
  readonly onLeft: () => void;
  readonly onLost: () => void;
}

const CHANGES: ReadonlySet<string> = new Set([...KINDS.map(listChanged), 'notifications/resources/updated']);

export function createUpstreamSession(options: UpstreamSessionOptions): UpstreamSession {
  const { upstreamId, revision, capabilities, send, bytesMax } = options;
  const headers = sessionHeaders(options);
  const calls = new TransientMap<RegisteredCall, true>();
  const listeners = new Set<Mailbox<Received>>();
  let users = 0;
  let lastId = 0;
  let logRank = Infinity;
  let stream: ServerStream | null = null;
  let hasNoStream = false;

  const post: UpstreamSession['post'] = (text, sender, more = {}) =>
    sender({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...headers }, body: text, ...more });
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
      calls.set(call, true);
      return () => void calls.delete(call);
    },
    post,
    resume: (lastEventId, sender) =>
      sender({
        method: 'GET',
        path: '',
        headers: { accept: 'text/event-stream', ...headers, 'last-event-id': lastEventId },
        body: null,
        patient: true,
      }),
    tell,
    async cancel(requestId) {
      const text = notificationText('notifications/cancelled', { requestId, reason: 'the client left' });
      try {
        const reply = await post(text, send).head;
        reply.discard();
        return reply.status < 300;
      } catch {
        return false;
      }
    },
    async logFrom(level) {
      const rank = rankOfLevel(level);
      // Calls share the level, so the lowest level that one of them wanted stays. Each call drops messages below its
      // own.
      if (!isObject(capabilities['logging']) || logRank <= rank) return;
      logRank = rank;
      // A server that refuses the level logs at the level that it chooses.
      await ask('logging/setLevel', { level }).catch(ignore);
    },
    async openStream() {
      if (hasNoStream) return false;
      stream ??= openServerStream({
        send,
        headers,
        bytesMax,
        heads: options.heads,
        onMessage(received) {
          if (!changed(received)) passToCalls(received, [...calls.keys()], tell);
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

/** Gives a message of the session's own stream to the calls that it may belong to. */
function passToCalls(received: Received, calls: readonly RegisteredCall[], tell: (text: string) => void): void {
  const { message } = received;
  if (message.kind === 'response') return;
  if (message.kind === 'request') {
    const { method, idText } = message;
    if (method === 'ping') return tell(resultText(idText, '{}'));
    // A server that asks outside of a call's stream most likely means the newest call that can be asked.
    const call = calls.findLast((one) => one.canBeAsked);
    if (call) return call.push(received);
    return tell(
      errorText(idText, { code: ERROR.methodNotFound, message: 'No running request has a client that accepts this' }),
    );
  }
  if (message.method === 'notifications/progress')
    return calls.find((call) => call.id === message.params?.['progressToken'])?.push(received);
  // All calls get a cancellation, because it may be about a question in any of them and each call knows its own
  // questions. Another notification belongs to the only call. With several calls it is not known to which it belongs.
  if (message.method === 'notifications/cancelled' || calls.length === 1) for (const call of calls) call.push(received);
}

const ignore = () => {};

interface OpenedSession extends ServerSession {
  readonly capabilities: JsonObject;
}

export interface SessionClient {
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
}

/** Opens a session on behalf of the client. Throws UpstreamFailure; the client's own request has not been sent then. */
export async function openSession(send: Send, client: SessionClient): Promise<OpenedSession> {
  try {
    const params = { protocolVersion: LEGACY[0], ...client };
    const { response, status, accepted } = await initializeAt(send, requestText(0, 'initialize', params));
    if (accepted === null || !isLegacyRevision(accepted.revision)) throw refused(status, response);
    const { result, ...session } = accepted;
    await postInitialized(send, session);
    return { ...session, capabilities: isObject(result['capabilities']) ? result['capabilities'] : {} };
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.unsent) throw error;
    const { attributedTo } = error;
    throw new UpstreamFailure(error.message, {
      ...error.providerFacts,
      retryable: true,
      attributedTo,
      unsent: true,
      cause: error,
    });
  }
}

function refused(status: number, { error }: ResponseMessage): UpstreamFailure {
  const why = error ? `refused initialize with error ${error.code}` : 'did not answer initialize as MCP says';
  return new UpstreamFailure(`the provider's server ${why}`, { status, retryable: true, attributedTo: 'provider' });
}

/** The resources that a session subscribes to at its server. Each is subscribed once, even for several clients. */
interface ResourceSubscriptions {
  /** Counts one more listener. Resolves to whether the server reports changes of the resource. */
  subscribe(uri: string): Promise<boolean>;
  unsubscribe(uri: string): void;
}

/** `ask` sends a request to the server. */
function createResourceSubscriptions(
  ask: (method: string, params: JsonObject) => Promise<ResponseMessage | null>,
): ResourceSubscriptions {
  const byUri = new Map<string, { count: number; readonly done: Promise<boolean> }>();
  return {
    subscribe(uri) {
      const known = byUri.get(uri);
      if (known) {
        known.count++;
        return known.done;
      }
      const done = ask('resources/subscribe', { uri }).then(
        (answer) => answer?.result !== undefined,
        () => false,
      );
      byUri.set(uri, { count: 1, done });
      return done;
    },
    unsubscribe(uri) {
      const known = byUri.get(uri);
      if (!known || --known.count > 0) return;
      byUri.delete(uri);
      ask('resources/unsubscribe', { uri }).catch(() => {});
    },
  };
}
