import { eventText, editText, lengthOf, type MarkedText, OWN_TURN_BYTES, piecesOfText, STREAM_HEADERS } from '#wire';
import type { KeepAlive, Silent } from './keep-alive.ts';
import { type ClientSink, endInSlices } from './reply-sink.ts';

/** The reply to one request of a client: one JSON message, or an event stream that ends with the response. */
export interface ClientAnswer {
  /**
   * Writes complete events before the response. A large event may be written in several calls. Resolves when more can
   * be written. For a client that accepts no event stream, the events are dropped.
   */
  events(bytes: Uint8Array): Promise<void>;
  /**
   * Writes the response, which ends the reply. Large strings are sent in slices, without waiting for the client.
   * `status` and `headers` are used only if no events came before.
   */
  end(
    text: string | MarkedText,
    status: number,
    headers?: Readonly<Record<string, string>>,
    eventId?: string | null,
  ): void;
  /**
   * A sink for a response that is too large for one string: its head, then the bytes of its JSON. After the head, no
   * other method can write. `asEvent` sends the response as an event even if it is the first one. null if the transport
   * accepts only strings.
   */
  body(asEvent?: boolean): ClientSink | null;
  /** Ends the reply without a response, because the client cancelled or there is no response. */
  close(): void;
}

interface ClientAnswerOptions {
  readonly sink: ClientSink;
  /** The client accepts an event stream. */
  readonly events: boolean;
  readonly keepAlive: KeepAlive;
  /** Additional headers for a stream. Called when the stream begins; default none. */
  readonly headers?: () => Readonly<Record<string, string>>;
}

const COMMENT = Buffer.from(': keep-alive\n\n');

const EVENT_STREAM_HEADERS = { 'content-type': 'text/event-stream', ...STREAM_HEADERS } as const;

/**
 * An answer that is JSON by default. It becomes an event stream with its first event, or after a long silence, because
 * a proxy in between could take a slow tool for a dead connection.
 */
export function createAnswer(options: ClientAnswerOptions): ClientAnswer {
  return new HttpAnswer(options);
}

/** The answer itself implements Silent, which saves one object per request. */
class HttpAnswer implements ClientAnswer, Silent {
  quietTicks = 0;
  place = -1;
  readonly #options: ClientAnswerOptions;
  #begun = false;
  #over = false;

  constructor(options: ClientAnswerOptions) {
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
    const written = this.#begun ? editText(text, (plain) => eventText(plain, eventId)) : text;
    const isShort = typeof written === 'string' && written.length <= OWN_TURN_BYTES;
    const pieces = isShort ? null : piecesOfText(written);
    if (!this.#begun) {
      const length = pieces === null ? Buffer.byteLength(written as string) : lengthOf(pieces);
      sink.head(status, { 'content-type': 'application/json', 'content-length': length, ...more });
    }
    if (pieces === null) sink.end(written as string);
    // Not awaited. If the client stops reading, its sink closes the connection after a timeout.
    else void endInSlices(pieces, sink);
  }

  body(asEvent = false): ClientSink {
    const { sink } = this.#options;
    return new ResponseSink(sink, (status, headers) => {
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

  /** False if the client is gone or the reply has ended already. */
  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    const { sink, keepAlive } = this.#options;
    keepAlive.forget(this);
    return !sink.closed;
  }
}

const NOTHING = Buffer.alloc(0);

type Begin = (status: number, headers: Readonly<Record<string, string | number>>) => 'json' | 'event';

/**
 * A sink for the bytes of the response that ends a reply: JSON, or the data of one event if the reply is an event
 * stream by then. `begin` writes the head if there was none, and returns the form.
 */
class ResponseSink implements ClientSink {
  readonly #client: ClientSink;
  readonly #begin: Begin;
  #isEvent = false;

  constructor(client: ClientSink, begin: Begin) {
    this.#client = client;
    this.#begin = begin;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  head(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.#isEvent = this.#begin(status, headers) === 'event';
    if (this.#isEvent) this.#client.write(EVENT);
  }

  flush(): void {
    this.#client.flush();
  }

  write(bytes: Uint8Array): boolean {
    return this.#client.write(this.#isEvent ? asData(bytes) : bytes);
  }

  drained(): Promise<void> {
    return this.#client.drained();
  }

  end(rest: Uint8Array | string): void {
    const bytes = typeof rest === 'string' ? Buffer.from(rest) : rest;
    this.#client.end(this.#isEvent ? Buffer.concat([asData(bytes), EVENT_END]) : bytes);
  }

  fail(bytes: Uint8Array): void {
    this.#client.fail(bytes);
  }

  cut(): void {
    this.#client.cut();
  }
}

const EVENT = Buffer.from('event: message\ndata: ');
const EVENT_END = Buffer.from('\n\n');
const LF = 0x0a;
const CR = 0x0d;

/**
 * Each line becomes a `data:` line, as in eventText. JSON has line ends only between tokens, so this does not change
 * its strings.
 */
function asData(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(LF) && !bytes.includes(CR)) return bytes;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return Buffer.from(text.replaceAll(/[\r\n]/g, '\ndata: '), 'latin1');
}
