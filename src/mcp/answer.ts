import type { KeepAlive, ReplySink, Silent } from '#gateway';
import { eventText } from './event-reader.ts';

/** The reply to one request of a client: one JSON message, or a stream of events that the response ends. */
export interface Answer {
  /** Writes whole events ahead of the response. Resolves when more can be written; drops them for a client that takes none. */
  events(bytes: Uint8Array): Promise<void>;
  /** Writes the response, which ends the reply. `status` and `headers` are those of a reply without events before it. */
  end(text: string, status: number, headers?: Readonly<Record<string, string>>, eventId?: string | null): void;
  /** Ends a reply that has no response: the client cancelled, or there is none to give. */
  close(): void;
}

export interface AnswerOptions {
  readonly sink: ReplySink;
  /** The client takes an event stream. */
  readonly events: boolean;
  readonly keepAlive: KeepAlive;
  /** Headers of the reply, whichever form it takes. */
  readonly headers: () => Readonly<Record<string, string>>;
}

const COMMENT = Buffer.from(': keep-alive\n\n');

export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/**
 * An answer that begins as JSON and becomes a stream with its first event, or when nothing was said for long: a proxy on the way would take a slow tool
 * for a dead connection.
 */
export function createAnswer({ sink, events, keepAlive, headers }: AnswerOptions): Answer {
  let begun = false;
  let over = false;
  const begin = () => {
    if (begun) return;
    begun = true;
    sink.head(200, { ...EVENT_STREAM_HEADERS, ...headers() });
    sink.flush();
  };
  const silent: Silent = {
    quietTicks: 0,
    beat() {
      begin();
      sink.write(COMMENT);
    },
  };
  if (events) keepAlive.watch(silent);
  const finish = () => {
    over = true;
    keepAlive.forget(silent);
    return !sink.closed;
  };

  return {
    async events(bytes) {
      if (!events || over || sink.closed) return;
      begin();
      silent.quietTicks = 0;
      if (sink.write(bytes)) return;
      keepAlive.forget(silent);
      await sink.drained();
      if (!over) keepAlive.watch(silent);
    },
    end(text, status, more = {}, eventId = null) {
      if (over || !finish()) return;
      if (begun) return sink.end(Buffer.from(eventText(text, eventId)));
      const body = Buffer.from(text);
      sink.head(status, { 'content-type': 'application/json', 'content-length': body.byteLength, ...headers(), ...more });
      sink.end(body);
    },
    close() {
      if (over || !finish()) return;
      if (!begun) sink.head(202, { ...headers(), 'content-length': 0 });
      sink.end(NOTHING);
    },
  };
}

const NOTHING = Buffer.alloc(0);
