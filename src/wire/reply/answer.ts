import type { KeepAlive, Silent } from './keep-alive.ts';
import type { ClientSink } from './reply-sink.ts';
import { eventText } from './event-reader.ts';
import { editText, lengthOf, type MarkedText } from './marked-text.ts';
import { responseSink } from './response-sink.ts';
import { endInSlices } from './write-slices.ts';

/** The reply to one request of a client: one JSON message, or a stream of events that the response ends. */
export interface Answer {
  /**
   * Writes whole events ahead of the response; a large one in pieces, one after the other. Resolves when more can be
   * written; drops them for a client that takes none.
   */
  events(bytes: Uint8Array): Promise<void>;
  /**
   * Writes the response, which ends the reply; nobody waits for large strings of it, which go out in slices. `status`
   * and `headers` are those of a reply without events before it.
   */
  end(
    text: string | MarkedText,
    status: number,
    headers?: Readonly<Record<string, string>>,
    eventId?: string | null,
  ): void;
  /**
   * The response as a sink, for one that is too large to be a text: its head, then the bytes of its JSON. The reply is
   * over with its head. `asEvent`: as an event, also where none was written before. null where only texts are taken.
   */
  body(asEvent?: boolean): ClientSink | null;
  /** Ends a reply without a response: the client cancelled, or none can be given. */
  close(): void;
}

export interface AnswerOptions {
  readonly sink: ClientSink;
  /** The client takes an event stream. */
  readonly events: boolean;
  readonly keepAlive: KeepAlive;
  /** More headers of a reply that is a stream, asked for when it begins; default none. */
  readonly headers?: () => Readonly<Record<string, string>>;
}

const COMMENT = Buffer.from(': keep-alive\n\n');

const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/**
 * An answer that begins as JSON and becomes a stream with its first event, or when nothing was said for long: a
 * proxy on the way would take a slow tool for a dead connection.
 */
export function createAnswer(options: AnswerOptions): Answer {
  return new HttpAnswer(options);
}

/** The answer is itself the stream that is kept alive, to save an object for each request. */
class HttpAnswer implements Answer, Silent {
  quietTicks = 0;
  place = -1;
  readonly #options: AnswerOptions;
  #begun = false;
  #over = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
    if (options.events) options.keepAlive.watch(this);
  }

  beat(): void {
    this.#begin();
    this.#options.sink.write(COMMENT);
  }

  async events(bytes: Uint8Array): Promise<void> {
    const { sink, events, keepAlive } = this.#options;
    if (!events || this.#over || sink.closed) return;
    this.#begin();
    this.quietTicks = 0;
    if (sink.write(bytes)) return;
    keepAlive.forget(this);
    await sink.drained();
    if (!this.#over) keepAlive.watch(this);
  }

  end(
    text: string | MarkedText,
    status: number,
    more: Readonly<Record<string, string>> = {},
    eventId: string | null = null,
  ): void {
    if (!this.#finish()) return;
    const { sink } = this.#options;
    const said = this.#begun ? editText(text, (plain) => eventText(plain, eventId)) : text;
    const pieces = typeof said === 'string' ? null : said.large.piecesOf(said.text);
    if (!this.#begun) {
      const length = pieces === null ? Buffer.byteLength(said as string) : lengthOf(pieces);
      sink.head(status, { 'content-type': 'application/json', 'content-length': length, ...more });
    }
    if (pieces === null) sink.end(said as string);
    // Nobody waits for the client: what it does not read for too long is cut off by its sink.
    else void endInSlices(pieces, sink);
  }

  body(asEvent = false): ClientSink {
    const { sink } = this.#options;
    return responseSink(sink, (status, headers) => {
      if (this.#finish() && asEvent) this.#begin();
      if (this.#begun) return 'event';
      sink.head(status, { 'content-type': 'application/json', ...headers });
      return 'json';
    });
  }

  close(): void {
    if (!this.#finish()) return;
    const { sink } = this.#options;
    if (!this.#begun) sink.head(202, { 'content-length': 0 });
    sink.end(NOTHING);
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { sink, headers } = this.#options;
    sink.head(200, headers === undefined ? EVENT_STREAM_HEADERS : { ...EVENT_STREAM_HEADERS, ...headers() });
    sink.flush();
  }

  /** False where there is nobody to answer, or it was done before. */
  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    const { sink, keepAlive } = this.#options;
    keepAlive.forget(this);
    return !sink.closed;
  }
}

const NOTHING = Buffer.alloc(0);
