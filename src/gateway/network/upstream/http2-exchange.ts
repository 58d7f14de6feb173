import {
  constants,
  type ClientHttp2Stream,
  type IncomingHttpHeaders as Http2Headers,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { UpstreamFailure } from '#wire';
import { INTERIM_REPLIES_MAX, TOO_MANY_INTERIM_REPLIES } from '#wire/undici';
import { scrubNothing } from '#security';
import { PiecedBody } from '#http';
import { CALL_OVER, type UpstreamExchange, type UpstreamRequest } from '#call';
import { bypassBuffer, readMore } from '../tunnel/http2-streams.ts';
import { PulledReply } from './pulled-reply.ts';

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;

/** Bytes that may wait for a slow reader before the stream is paused. Up to a full window may still follow. */
const QUEUE_BYTES_MAX = 32 * 1024;
/** Bytes that a stream may still send after `discard`, before it is reset. */
const DISCARD_BYTES_MAX = 16 * 1024;

/** Interprets the events of an exchange. */
export interface ExchangeOwner {
  /** Interprets a response head. null: it is a reply. `again`: the request was not processed and may be sent again. */
  judge(headers: Http2Headers): UpstreamFailure | 'again' | null;
  /** Interprets a stream that ended before its response head. `code` is the code of its RST_STREAM. */
  broken(error: NodeJS.ErrnoException | null, code: number): UpstreamFailure | 'again';
  /** Called after `again`. The exchange has no stream and waits for `begin` or `fail`. */
  again(exchange: Http2Exchange): void;
  /** Called once when the exchange has ended, complete or not. */
  ended(exchange: Http2Exchange): void;
}

/** Timeouts of an exchange, in ticks of the owner's clock: until the head, during the reply, and after `discard`. */
export interface Patience {
  readonly headTurns: number;
  readonly idleTurns: number;
  readonly discardTurns: number;
}

/**
 * One request over an HTTP/2 session, and its reply with a bounded queue. The stream's own buffer is bypassed: chunks
 * come here as the session reads them. So the waiting bytes are counted exactly, can be copied, and stay available
 * after the session has ended.
 */
export class Http2Exchange extends PulledReply implements UpstreamExchange {
  /** Nothing to remove: credentials are added by the provider's proxy, so the gateway never has them. */
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

  /** False once it failed or was aborted. It needs no stream then. */
  get isLive(): boolean {
    return this.error === null;
  }

  /** Sends the request on a new stream. */
  begin(stream: ClientHttp2Stream, body: UpstreamRequest['body']): void {
    this.#stream = stream;
    bypassBuffer(stream, (chunk) => {
      if (this.#stream !== stream) return false;
      if (chunk !== null) return this.#take(chunk);
      this.#end(stream);
      return false;
    });
    stream.on('response', (headers) => {
      if (this.#stream === stream) this.#respond(stream, headers);
    });
    let interim = 0;
    const another = () => {
      if (++interim <= INTERIM_REPLIES_MAX || this.#stream !== stream) return;
      this.abort(new UpstreamFailure(TOO_MANY_INTERIM_REPLIES, { retryable: true, attributedTo: 'provider' }));
    };
    stream.on('continue', another);
    stream.on('headers', another);
    let failure: Error | null = null;
    stream.on('error', (error) => {
      failure = error;
    });
    stream.on('close', () => {
      if (this.#stream === stream) this.#closed(stream, failure);
    });
    if (body === null) stream.end();
    else if (body instanceof PiecedBody) void sendPieces(stream, body);
    else stream.end(body);
  }

  /** The owner calls this at each tick of its clock. */
  turn(): void {
    if (this.queue.length > 0) {
      // The exchange waits for its reader, so the provider's timeout does not run. The chunks are copied, because each
      // chunk keeps the whole WebSocket message in memory, which also has chunks of other calls. Buffer.concat puts
      // small chunks into a shared pool, so the second copy gives them memory of their own.
      const [first] = this.queue;
      if (this.queue.length > 1 || first!.buffer.byteLength > 2 * first!.byteLength)
        this.queue = [Buffer.from(new Uint8Array(Buffer.concat(this.queue)).buffer)];
      return;
    }
    if (--this.#turnsLeft > 0) return;
    const message =
      this.status === 0
        ? 'the provider did not answer in time'
        : 'the provider fell silent in the middle of its answer';
    this.abort(new UpstreamFailure(message, { retryable: true, attributedTo: 'provider', timedOut: true }));
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

  /** Ends the exchange with an error. Does not touch its stream. */
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
    // The bytes after this head are not a reply.
    this.#reset();
    if (verdict === 'again') this.#owner.again(this);
    else this.fail(verdict);
  }

  /** Takes a chunk. Returns false to pause the stream. */
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
    if (this.#stream !== null) readMore(this.#stream);
  }

  /**
   * Handles the end of a stream. A stream that was reset without an error code ends too, but is already closed then.
   */
  #end(stream: ClientHttp2Stream): void {
    if (this.#over || stream.closed) return;
    this.complete = true;
    // The `response` event may come after the bytes, and then finishes the exchange.
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
          attributedTo: 'provider',
          cause,
        }),
      );
      return;
    }
    const verdict = this.#owner.broken(error, stream.rstCode ?? NGHTTP2_NO_ERROR);
    if (verdict === 'again') this.#owner.again(this);
    else this.fail(verdict);
  }

  /** Releases the stream. Drops queued bytes if there was no response head. */
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

/** Makes the next piece of a body when the stream has room for it. */
async function sendPieces(stream: ClientHttp2Stream, body: PiecedBody): Promise<void> {
  for await (const piece of body) {
    if (stream.destroyed || stream.writableEnded) return;
    if (!stream.write(piece)) await new Promise((resolve) => void stream.once('drain', resolve));
  }
  stream.end();
}
