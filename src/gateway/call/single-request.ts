import { isPromise, UpstreamFailure } from '#wire';
import type { ReplyPiece, Usage } from '#billing/amounts';
import type { Offer } from '#catalog';
import type { UpstreamRequest, Send, UpstreamExchange, UpstreamReply } from './upstream.ts';
import type { ProviderAdapter, ProviderStream, ReplyEnd, Cut } from './call.ts';

/**
 * One request and the reader of its reply, for each offer that is tried. `singleRequest` turns it into a provider
 * adapter. One RequestAdapter serves all attempts of its call.
 */
export interface RequestAdapter<R = unknown, D extends ReplyPiece = Uint8Array> {
  request(offer: Offer): UpstreamRequest;
  reader(offer: Offer): ReplyReader<R, D>;
  /**
   * The offer refused the request with this status and body (at most 64 KiB of it). Returns true if `request` now gives
   * another form of the same request, to send to the same offer. It returns true only a few times for each offer.
   * Absent: never.
   */
  reform?(offer: Offer, status: number, body: Uint8Array): boolean;
  /** See ProviderAdapter. */
  goesOnAt?(offer: Offer): boolean;
  /** The offer has taken the form that `reform` led to. */
  accepted?(offer: Offer): void;
}

interface ReaderEnd<R = unknown, D extends ReplyPiece = Uint8Array> extends ReplyEnd<R> {
  /** The rest for the client that the end has revealed. It is given out before the settlement. Default nothing. */
  readonly rest?: D | null;
}

/**
 * Reads one upstream reply: bytes in, pieces for the client out, usage and result at the end. Methods run in this
 * order, on one reply.
 */
export interface ReplyReader<R = unknown, D extends ReplyPiece = Uint8Array> {
  /**
   * The status line and headers arrived. Throws UpstreamFailure when the reply cannot be used.
   * For an error status it does not throw: the body follows, to `failure`.
   */
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** An error status with its body (at most 64 KiB of it). Returns what it means. */
  failure(status: number, body: Uint8Array): UpstreamFailure;
  /**
   * Bytes arrived, in one piece or more. Returns what may go to the client now (null or empty: nothing). Throws
   * UpstreamFailure on a broken reply.
   */
  data(chunks: readonly Uint8Array[]): D | null;
  /** The reply is complete. Throws UpstreamFailure when it ended too early. */
  end(): ReaderEnd<R, D>;
  /**
   * Called before `end`, if present. For a reply that takes long to parse, resolves with its end, made in another
   * thread. null: call `end`. Rejects with the errors that `end` throws.
   */
  endElsewhere?(): Promise<ReaderEnd<R, D>> | null;
  /** Number of bytes of the reply that it holds in memory until its end; undefined if it passes them on. */
  readonly storedBytes: number | undefined;
  /**
   * The gateway ended the reply, perhaps before its head. Returns what is charged for it by `chargeOfCut`: what the
   * provider claimed, what was measured, or nothing (`free`). Also called after `data` or `end` threw a failure that is
   * `tooLarge`. Throws UpstreamFailure if the reply was broken before.
   */
  cut(cut: Cut): ReplyEnd<R>;
  /** Called before `cut`, if present, as `endElsewhere` is before `end`. */
  cutElsewhere?(cut: Cut): Promise<ReplyEnd<R>> | null;
  /**
   * True once no further byte can change the end (`[DONE]`, or output past the budget). Then call `end()` at once and
   * ignore the rest.
   */
  readonly finished?: boolean;
}

/**
 * The usage of a call whose answer was too large to read, so that the provider's report is lost: the call, the time,
 * and one token for each four bytes. An offer charges only the meters that it has a price for.
 */
export const measuredUse = ({ received }: UpstreamFailure, durationMs: number): Usage => ({
  call: 1n,
  completion: BigInt(Math.ceil(received / 4)),
  second: BigInt(Math.ceil(durationMs / 1000)),
});

const EVENT_STREAM = 'text/event-stream';
const FAILURE_BODY_BYTES_MAX = 64 * 1024;
/** So much of a reply that cannot be used is looked at for its first words. */
const SAID_BYTES_MAX = 4_096;
const NOTHING = new Uint8Array(0);

/** The attempt that sends one request to each offer and reads one reply. */
export const singleRequest = <R, D extends ReplyPiece>(request: RequestAdapter<R, D>): ProviderAdapter<R, D> => ({
  endsWithCall: true,
  isOneRequest: true,
  startAttempt: (offer, send) => new SingleRequest(request, offer, send),
  goesOnAt: (offer) => request.goesOnAt?.(offer) ?? false,
});

/** An iterator without a generator, because a generator would cost more for each chunk. */
class SingleRequest<R, D extends ReplyPiece> implements ProviderStream<R, D> {
  status: number | undefined;
  streams = false;
  readonly #adapter: RequestAdapter<R, D>;
  readonly #offer: Offer;
  readonly #send: Send;
  #reader: ReplyReader<R, D> | null = null;
  /** The provider refuses the request: its answer has an error status. */
  #refusing = false;
  #reformed = false;
  #reply: UpstreamReply | null = null;
  #end: ReplyEnd<R> | null = null;
  #last: readonly Uint8Array[] = [];
  /** The first bytes of the reply, until some are given out: what the provider said if they cannot be used. */
  #first: Uint8Array = NOTHING;

  constructor(adapter: RequestAdapter<R, D>, offer: Offer, send: Send) {
    this.#adapter = adapter;
    this.#offer = offer;
    this.#send = send;
  }

  /** Each step has what one read gave for the client: null while the reader holds it back. */
  async next(): Promise<IteratorResult<D | null, ReplyEnd<R>>> {
    if (this.#end !== null) return { done: true, value: this.#end };
    let reply = this.#reply;
    while (reply === null) {
      const upstreamRequest = this.#adapter.request(this.#offer);
      this.streams = upstreamRequest.headers['accept']?.startsWith(EVENT_STREAM) === true;
      const request = this.#send(upstreamRequest);
      const begun = await request.head;
      reply = this.#accept(begun) ? begun : await this.#again(request, begun);
    }
    const reader = this.#reader!;
    try {
      while (!reader.finished) {
        const room = reader.storedBytes === undefined ? null : (reply.memory?.keeps(reader.storedBytes) ?? null);
        if (room !== null) await room;
        // A small reply arrives together with its end. Its end then needs no extra step.
        const reading = reply.ended ? null : reply.read();
        const chunks = isPromise(reading) ? await reading : reading;
        if (chunks === null) break;
        this.#last = chunks;
        if (this.#first === NOTHING && chunks.length > 0) this.#first = chunks[0]!;
        const data = reader.data(chunks);
        if (!reply.ended || (data !== null && data.byteLength > 0)) {
          // What was given out is not kept here.
          if (data !== null && data.byteLength > 0) this.#first = NOTHING;
          return { done: false, value: data };
        }
      }
      const elsewhere = reader.endElsewhere?.() ?? null;
      const end = elsewhere === null ? reader.end() : await elsewhere;
      if (end.outcome !== 'over_cap') reply.discard();
      if (!end.rest) return { done: true, value: end };
      this.#end = end;
      return { done: false, value: end.rest };
    } catch (error) {
      throw error instanceof UpstreamFailure ? this.#reported(error, reply) : error;
    }
  }

  /** The failure as it is told: with the reply that it is about, and without secrets, which a provider may repeat. */
  #reported(failure: UpstreamFailure, { status, scrub }: UpstreamReply): UpstreamFailure {
    const clean = failure.detail === null ? failure : failure.withDetail(scrub(failure.detail));
    if (clean.attributedTo !== 'provider' || clean.status !== null) return clean;
    return clean.ofReply(
      status,
      scrub(clean.replyText ?? Buffer.from(this.#first.subarray(0, SAID_BYTES_MAX)).toString()),
    );
  }

  async cut(cut: Cut): Promise<ReplyEnd<R> | null> {
    // Of a request that was taken the input may be paid before a reply has begun. Nothing is paid for a refusal.
    if (this.#refusing || (this.#reader === null && !cut.own)) return null;
    try {
      const reader = this.#reader ?? this.#adapter.reader(this.#offer);
      const whole = this.#withLast(cut);
      return (await reader.cutElsewhere?.(whole)) ?? reader.cut(whole);
    } catch (error) {
      if (error instanceof UpstreamFailure) return null;
      throw error;
    }
  }

  /** Readers of streams keep nothing, and a usage may have come with the event that was too large. */
  #withLast(cut: Cut): Cut {
    if (cut.reason !== 'too_large' || !cut.own) return cut;
    return { ...cut, rest: Buffer.concat(cut.rest === undefined ? this.#last : [...this.#last, cut.rest]) };
  }

  /** Returns false for an error status. */
  #accept(reply: UpstreamReply): boolean {
    const reader = (this.#reader = this.#adapter.reader(this.#offer));
    this.#refusing = reply.status >= 400;
    try {
      reader.head(reply.status, reply.headers);
    } catch (error) {
      throw error instanceof UpstreamFailure ? this.#reported(error, reply) : error;
    }
    if (this.#refusing) return false;
    if (this.#reformed) this.#adapter.accepted?.(this.#offer);
    this.status = reply.status;
    this.#reply = reply;
    return true;
  }

  /**
   * Resolves if another form of the refused request is to be sent. Rejects with the meaning of the refusal otherwise.
   */
  async #again(request: UpstreamExchange, reply: UpstreamReply): Promise<null> {
    const body = await readFailure(reply);
    const failure = this.#reader!.failure(reply.status, body);
    if (!this.#adapter.reform?.(this.#offer, reply.status, body)) throw failure;
    request.abort(failure);
    request.memory?.release();
    this.#reformed = true;
    this.#reader = null;
    this.#refusing = false;
    return null;
  }
}

async function readFailure(reply: UpstreamReply): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < FAILURE_BODY_BYTES_MAX) {
    const arrived = await reply.read();
    if (arrived === null) break;
    chunks.push(...arrived);
    for (const chunk of arrived) bytes += chunk.byteLength;
  }
  return Buffer.from(reply.scrub(Buffer.concat(chunks).toString('utf8', 0, FAILURE_BODY_BYTES_MAX)));
}

/**
 * A provider adapter that passes no bytes to the client, and has only an end. `work` begins when the first result is
 * asked for. Such adapters share this function, because a generator function of each call would keep the call in
 * memory until V8's next full collection (decision 91).
 */
// oxlint-disable-next-line require-yield -- the client gets no bytes
export async function* endOnly<R>(work: () => Promise<ReplyEnd<R>>): AsyncGenerator<never, ReplyEnd<R>, undefined> {
  return await work();
}
