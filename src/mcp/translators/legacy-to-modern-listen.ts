import { isObject, type JsonObject } from '#wire';
import { type JsonRpcMessage, readReply } from '#json-rpc';
import type { UpstreamExchange } from '#call';
import { freeEnd, providerFailure } from '../request/ending.ts';
import {
  eventBytes,
  LISTENING,
  type LegacySession,
  type McpEnd,
  type ServerPlace,
  type ServerFacts,
} from '../request/mcp-request.ts';
import { createMailbox } from '../request/waiting.ts';
import { requestText, ACKNOWLEDGED, type ListKind, KINDS, toNotifications } from '../wire/own-messages.ts';
import { withMeta } from '../wire/meta.ts';
import { MODERN_POST_HEADERS } from '../servers/legacy-server.ts';
import { envelopeOf, withoutSubscription } from '../request/legacy-to-modern-text.ts';

/**
 * The stream that a legacy client opens with GET. Yields events. Ends free when the server ends it, when a newer stream
 * replaces it, or when `signal` aborts.
 */
export type ListenModern = (
  session: LegacySession,
  place: ServerPlace,
) => AsyncGenerator<Uint8Array, McpEnd, undefined>;

interface ListenModernOptions {
  readonly subscriptions: Subscriptions;
  readonly replyBytesMax: number;
}

interface Stream {
  readonly exchange: UpstreamExchange;
  /** Version of the list of URIs that the request named. */
  readonly version: number;
  /**
   * The server will send nothing on this stream. When it ends, the client's stream stays open, because the client would
   * only open it again.
   */
  idle: boolean;
}

type News =
  | { readonly kind: 'message'; readonly stream: Stream; readonly message: JsonRpcMessage }
  | { readonly kind: 'ended'; readonly stream: Stream; readonly failure: Error | null }
  | { readonly kind: 'changed' }
  | { readonly kind: 'over' };

const METHOD = 'subscriptions/listen';
/** Notifications about the stream itself. They are not passed on. */
const OF_THE_STREAM: ReadonlySet<string> = new Set([ACKNOWLEDGED, 'notifications/cancelled']);

export function createListenModern({ subscriptions, replyBytesMax }: ListenModernOptions): ListenModern {
  return async function* listenModern(session, { facts, send, signal }) {
    const inbox = createMailbox<News>();
    const leave = () => void inbox.put({ kind: 'over' });
    const watch = subscriptions.watch(session, { changed: () => void inbox.put({ kind: 'changed' }), replaced: leave });
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    /** `opening` replaces `current` once the server has acknowledged it, so that no message is lost in between. */
    const streams: { current: Stream | null; opening: Stream | null } = { current: null, opening: null };

    function open(): void {
      const version = watch.version();
      const filter = filterOf(facts, subscriptions.uris(session));
      if (filter === null) return takeOver(null, version);
      const request = requestText(`listen-${version}`, METHOD, { notifications: filter });
      const body = withMeta(request, 'params', envelopeOf(session, false));
      streams.opening = {
        exchange: send({ method: 'POST', path: '', headers: HEADERS, body, listens: true }),
        version,
        idle: false,
      };
      void pump(streams.opening);
    }

    function takeOver(stream: Stream | null, version: number): void {
      streams.current?.exchange.abort(UNREAD);
      streams.current = stream;
      streams.opening = null;
      watch.acknowledge(version);
      if (watch.version() !== version) open();
    }

    async function pump(stream: Stream): Promise<void> {
      try {
        const reply = await stream.exchange.head;
        for await (const { message } of readReply(reply, replyBytesMax)) {
          if (message) await inbox.put({ kind: 'message', stream, message });
        }
        await inbox.put({ kind: 'ended', stream, failure: null });
      } catch (error) {
        await inbox.put({ kind: 'ended', stream, failure: error as Error });
      }
    }

    try {
      open();
      for (let stands = false; ;) {
        if (!stands && streams.opening === null) {
          stands = true;
          yield LISTENING;
        }
        const news = (await inbox.take()) as News;
        if (news.kind === 'over') return CLOSED;
        if (news.kind === 'changed') {
          if (streams.opening === null) open();
          continue;
        }
        const { stream } = news;
        const opening = stream === streams.opening;
        if (!opening && stream !== streams.current) continue;
        if (news.kind === 'message') {
          const { message } = news;
          if (message.kind === 'response') stream.idle ||= message.error !== undefined;
          if (isAcknowledgement(message)) stream.idle = honoursNothing(message);
          if (opening && (message.kind === 'response' || isAcknowledgement(message))) takeOver(stream, stream.version);
          if (message.kind === 'notification' && !OF_THE_STREAM.has(message.method))
            yield eventBytes(withoutSubscription(message.text));
        } else if (opening) {
          throw news.failure ?? providerFailure('the provider ended a stream that it did not acknowledge', null);
        } else {
          // A closed stream makes the client open a new one. That is not needed while a replacement is being opened.
          if (!stream.idle && streams.opening === null) return CLOSED;
          streams.current = null;
        }
      }
    } finally {
      signal.removeEventListener('abort', leave);
      watch.end();
      inbox.end();
      // Taking the messages releases the pumps, which wait until their message is taken.
      while (!inbox.isEmpty()) await inbox.take();
    }
  };
}

/** The notifications that the server offers; null if it offers none. */
function filterOf({ capabilities }: ServerFacts, uris: readonly string[]): JsonObject | null {
  const offers = (kind: ListKind) => (capabilities[kind] as JsonObject | undefined)?.['listChanged'] === true;
  const filter = toNotifications({ kinds: KINDS.filter(offers), uris });
  return Object.keys(filter).length === 0 ? null : filter;
}

const isAcknowledgement = (message: JsonRpcMessage) =>
  message.kind === 'notification' && message.method === ACKNOWLEDGED;

function honoursNothing(message: JsonRpcMessage): boolean {
  const honoured = message.kind === 'notification' ? message.params?.['notifications'] : null;
  return (
    isObject(honoured) &&
    Object.values(honoured).every((value) => value !== true && !(Array.isArray(value) && value.length > 0))
  );
}

const HEADERS = { ...MODERN_POST_HEADERS, 'mcp-method': METHOD } as const;
const UNREAD = new Error('the stream is not read any more');
const CLOSED = freeEnd(null, 'closed');

/**
 * The resources that legacy sessions subscribed to. A modern server keeps no such list, because each listen request
 * names all resources.
 */
export interface Subscriptions {
  uris(session: LegacySession): readonly string[];
  /** False if the session has too many. */
  add(session: LegacySession, uri: string): boolean;
  remove(session: LegacySession, uri: string): void;
  /**
   * Resolves when the server uses the present list for the session's stream. Resolves at once without an open stream,
   * and when `signal` aborts.
   */
  settled(session: LegacySession, signal: AbortSignal): Promise<void>;
  /** Follows the list for a stream. A session has one stream, so an earlier watcher's `replaced` is called. */
  watch(session: LegacySession, watcher: Watcher): Watch;
}

interface Watcher {
  changed(): void;
  replaced(): void;
}

interface Watch {
  version(): number;
  /** Notes that the server uses the list of this version. */
  acknowledge(version: number): void;
  end(): void;
}

interface ListenState {
  readonly uris: Set<string>;
  chars: number;
  version: number;
  watcher: Watcher | null;
  acknowledged: number;
  readonly waiting: Set<() => void>;
}

/** Most characters of all URIs of a session, because they go out in one request. */
const CHARS_MAX = 64 * 1024;

export function createSubscriptions(): Subscriptions {
  // Weak, so that the state is freed with its session.
  const states = new WeakMap<LegacySession, ListenState>();

  function stateOf(session: LegacySession): ListenState {
    let state = states.get(session);
    if (!state) {
      state = { uris: new Set(), chars: 0, version: 0, watcher: null, acknowledged: 0, waiting: new Set() };
      states.set(session, state);
    }
    return state;
  }

  const change = (state: ListenState, chars: number) => {
    state.chars += chars;
    state.version++;
    state.watcher?.changed();
  };
  const wake = (state: ListenState) => {
    for (const done of state.waiting) done();
  };

  return {
    uris: (session) => [...stateOf(session).uris],
    add(session, uri) {
      const state = stateOf(session);
      if (state.uris.has(uri)) return true;
      if (state.chars + uri.length > CHARS_MAX) return false;
      state.uris.add(uri);
      change(state, uri.length);
      return true;
    },
    remove(session, uri) {
      const state = stateOf(session);
      if (state.uris.delete(uri)) change(state, -uri.length);
    },
    settled(session, signal) {
      const state = stateOf(session);
      const { version } = state;
      const holds = () => state.watcher === null || state.acknowledged >= version || signal.aborted;
      if (holds()) return Promise.resolve();
      return new Promise((resolve) => {
        const done = () => {
          if (!holds()) return;
          signal.removeEventListener('abort', done);
          state.waiting.delete(done);
          resolve();
        };
        signal.addEventListener('abort', done);
        state.waiting.add(done);
      });
    },
    watch(session, watcher) {
      const state = stateOf(session);
      state.watcher?.replaced();
      state.watcher = watcher;
      state.acknowledged = -1;
      return {
        version: () => state.version,
        acknowledge(version) {
          if (state.watcher !== watcher) return;
          state.acknowledged = version;
          wake(state);
        },
        end() {
          if (state.watcher !== watcher) return;
          state.watcher = null;
          wake(state);
        },
      };
    },
  };
}
