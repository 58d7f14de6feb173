import {
  constants,
  type ClientHttp2Stream,
  type IncomingHttpHeaders as Http2Headers,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { UpstreamFailure, scrubNothing } from '#wire';
import { CALL_OVER, type UpstreamExchange } from '#gateway';
import { PulledReply } from './pulled-reply.ts';

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;

/** Bytes that wait for a slow reader before the stream is held back. As many as its window has may follow. */
const QUEUE_BYTES_MAX = 32 * 1024;
/** Bytes that a stream may still send after its reply was complete, before it is reset. */
const DISCARD_BYTES_MAX = 16 * 1024;
/** Decides what the events of an exchange mean. */
export interface ExchangeOwner {
  /**
   * Judges a response head: a failure, or null for a reply. `again`: the request has not begun and may be sent once
   * more.
   */
  judge(headers: Http2Headers): UpstreamFailure | 'again' | null;
  /** Judges a stream that ended before its response head. `code` is that of its RST_STREAM. */
  broken(error: NodeJS.ErrnoException | null, code: number): UpstreamFailure | 'again';
  /** It was `again`: the exchange has no stream, and waits for `begin` or `fail`. */
  again(exchange: Http2Exchange): void;
  /** The exchange has ended, complete or not. Called once. */
  ended(exchange: Http2Exchange): void;
}

/** Turns of a clock that an exchange may be silent for. */
export interface Patience {
  readonly headTurns: number;
  readonly idleTurns: number;
  readonly discardTurns: number;
}

/**
 * One request over an HTTP/2 session, and its reply with a bounded queue between. The stream's own buffer is not
 * used: its chunks come here as the session reads them, so that what waits is counted exactly, can be copied, and
 * outlives the session once it has arrived.
 */
export class Http2Exchange extends PulledReply implements UpstreamExchange {
  /** The provider's proxy adds its credentials behind the tunnel. */
  readonly scrub = scrubNothing;
  readonly #owner: ExchangeOwner;
  readonly #patience: Patience;
  #stream: ClientHttp2Stream | null = null;
  #held = false;
  #discarding = false;
  #over = false;
  #turnsLeft: number;

  constructor(owner: ExchangeOwner, patience: Patience) {
    super();
    this.#owner = owner;
    this.#patience = patience;
    this.#turnsLeft = patience.headTurns;
  }

  /** False once it failed or was aborted: no stream is needed for it any more. */
  get wanted(): boolean {
    return this.error === null;
  }

  /** Sends the request on a stream that was just opened. */
  begin(stream: ClientHttp2Stream, body: Uint8Array | string | null): void {
    this.#stream = stream;
    const bypassed = stream.push;
    stream.push = (chunk: Buffer | null): boolean => {
      if (chunk !== null) return this.#stream === stream && this.#take(chunk);
      if (this.#stream === stream) this.#end(stream);
      // The stream itself is told, so that it closes.
      return bypassed.call(stream, null);
    };
    stream._read(0);
    stream.on('response', (headers) => {
      if (this.#stream === stream) this.#respond(stream, headers);
    });
    let failure: Error | null = null;
    stream.on('error', (error) => {
      failure = error;
    });
    stream.on('close', () => {
      if (this.#stream === stream) this.#closed(stream, failure);
    });
    if (body === null) stream.end();
    else stream.end(body);
  }

  /** A turn of the clock. */
  turn(): void {
    if (this.queue.length > 0) {
      // It waits for its reader, not for the provider. Each chunk would keep the whole message in memory that it
      // came in with those of other calls.
      const [first] = this.queue;
      if (this.queue.length > 1 || first!.buffer.byteLength > 2 * first!.byteLength)
        this.queue = [Buffer.concat(this.queue)];
      return;
    }
    if (--this.#turnsLeft > 0) return;
    const message =
      this.status === 0
        ? 'the provider did not answer in time'
        : 'the provider fell silent in the middle of its answer';
    this.abort(new UpstreamFailure(message, { retryable: true, blame: 'provider', timedOut: true }));
  }

  protected emptied(): void {
    this.#turnsLeft = this.#patience.idleTurns;
    this.#release();
  }

  abort(reason: Error): void {
    if (this.#over) return;
    this.clearQueue();
    this.fail(reason);
    this.#reset();
  }

  over(): void {
    if (!this.#discarding) this.abort(CALL_OVER);
  }

  discard(): void {
    if (this.#over) return;
    this.#discarding = true;
    this.clearQueue();
    this.#turnsLeft = this.#patience.discardTurns;
    this.#release();
  }

  /** Ends the exchange with what went wrong. The stream, if there is one, is left as it is. */
  fail(error: Error): void {
    if (this.#over) return;
    this.failed(error);
    this.#finish();
  }

  #respond(stream: ClientHttp2Stream, headers: Http2Headers & IncomingHttpStatusHeader): void {
    if (this.#over) return;
    const verdict = this.#owner.judge(headers);
    if (verdict === null) {
      const { ':status': status } = headers;
      delete headers[':status'];
      this.#turnsLeft = this.#patience.idleTurns;
      this.begun(status!, headers);
      if (this.complete) this.#finish();
      return;
    }
    // The bytes that come with it belong to no reply.
    this.#reset();
    if (verdict === 'again') this.#owner.again(this);
    else this.fail(verdict);
  }

  /** Returns false to hold the stream back. */
  #take(chunk: Buffer): boolean {
    if (this.#over) return true;
    this.queuedBytes += chunk.byteLength;
    if (this.#discarding) {
      if (this.queuedBytes > DISCARD_BYTES_MAX) this.abort(new Error('the reply went on after its end'));
      return true;
    }
    this.#turnsLeft = this.#patience.idleTurns;
    this.queue.push(chunk);
    this.#held = this.queuedBytes > QUEUE_BYTES_MAX;
    this.wakeReader();
    return !this.#held;
  }

  #release(): void {
    if (!this.#held) return;
    this.#held = false;
    // The way by which a stream is told that its reader wants more.
    this.#stream?._read(0);
  }

  /** Nothing more comes. A stream that was reset without an error code says so too, but is closed by then. */
  #end(stream: ClientHttp2Stream): void {
    if (this.#over || stream.closed) return;
    this.complete = true;
    // The head is told later than what came with it.
    if (this.status !== 0) this.#finish();
  }

  #closed(stream: ClientHttp2Stream, error: Error | null): void {
    this.#reset();
    if (this.#over) return;
    if (this.status !== 0) {
      const cause = error ?? undefined;
      this.fail(
        new UpstreamFailure('the provider broke off in the middle of its answer', {
          retryable: true,
          blame: 'provider',
          cause,
        }),
      );
      return;
    }
    const verdict = this.#owner.broken(error, stream.rstCode ?? NGHTTP2_NO_ERROR);
    if (verdict === 'again') this.#owner.again(this);
    else this.fail(verdict);
  }

  /** Lets go of the stream. What the exchange holds of a reply without a head goes with it. */
  #reset(): void {
    const stream = this.#stream;
    this.#stream = null;
    this.#held = false;
    if (this.status === 0) {
      this.clearQueue();
      this.complete = false;
    }
    if (stream && !stream.closed) stream.close(NGHTTP2_CANCEL);
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.ended(this);
    this.wakeReader();
  }
}
