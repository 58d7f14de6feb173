import { isObject, type JsonObject, type JsonRpcMessage } from '#wire';
import { readReply, type ReplyEnd, type UpstreamExchange } from '#gateway';
import { freeEnd } from '../../../request/ending.ts';
import { eventBytes, LISTENING } from '../../../request/events.ts';
import { createMailbox } from '../../../request/mailbox.ts';
import { providerFailure } from '../../../request/provider-failure.ts';
import { requestText } from '../../../wire/own-messages.ts';
import { ACKNOWLEDGED, type Kind, KINDS, toNotifications } from '../../../wire/subscriptions.ts';
import { withMeta } from '../../../wire/meta.ts';
import type { LegacySession } from '../../../request/session.ts';
import type { Place, ServerFacts } from '../../../request/mcp-request.ts';
import { MODERN_POST_HEADERS } from '../../post-headers.ts';
import { envelopeOf } from './envelope.ts';
import type { Subscriptions } from './subscriptions.ts';
import { withoutSubscription } from './to-legacy.ts';

/**
 * The stream that a legacy client opens with GET. Yields events. Ends free when the server ends it, when a newer stream
 * replaces it, or when `signal` aborts.
 */
export type ListenModern = (session: LegacySession, place: Place) => AsyncGenerator<Uint8Array, ReplyEnd, undefined>;

interface ListenModernOptions {
  readonly subscriptions: Subscriptions;
  readonly replyBytesMax: number;
}

/** The exchange of one `subscriptions/listen`. */
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
  const offers = (kind: Kind) => (capabilities[kind] as JsonObject | undefined)?.['listChanged'] === true;
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
