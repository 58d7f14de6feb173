import { UpstreamFailure } from '#wire';
import type {
  ProviderAdapter,
  Cut,
  RequestAdapter,
  Offer,
  ReplyEnd,
  ReplyReader,
  Send,
  ProviderStream,
} from './call.ts';
import type { UpstreamExchange, UpstreamReply } from './upstream.ts';

type Step = IteratorResult<Uint8Array, ReplyEnd>;

const FAILURE_BODY_BYTES_MAX = 64 * 1024;
const NOTHING = new Uint8Array(0);

/** The attempt that sends one request to each offer and reads one reply. */
export const singleRequest = (exchange: RequestAdapter): ProviderAdapter<ProviderStream> => ({
  endsWithCall: true,
  startAttempt: (offer, send) => new SingleRequest(exchange, offer, send),
});

/** An iterator without a generator, because a generator would cost more for each chunk. */
class SingleRequest implements ProviderStream {
  status: number | undefined;
  readonly #exchange: RequestAdapter;
  readonly #offer: Offer;
  readonly #send: Send;
  #reader: ReplyReader | null = null;
  #reply: UpstreamReply | null = null;
  #end: ReplyEnd | null = null;

  constructor(exchange: RequestAdapter, offer: Offer, send: Send) {
    this.#exchange = exchange;
    this.#offer = offer;
    this.#send = send;
  }

  /** Each step has the client's bytes from one read. They are empty while the reader holds them back. */
  async next(): Promise<Step> {
    if (this.#end !== null) return { done: true, value: this.#end };
    let reply = this.#reply;
    while (reply === null) {
      const request = this.#send(this.#exchange.request(this.#offer));
      const begun = await request.head;
      reply = this.#accept(begun) ? begun : await this.#again(request, begun);
    }
    const reader = this.#reader!;
    while (!reader.finished) {
      const room = reader.kept === undefined ? null : (reply.memory?.keeps(reader.kept) ?? null);
      if (room !== null) await room;
      // A small reply arrives together with its end. Its end then needs no extra step.
      const reading = reply.ended ? null : reply.read();
      const chunks = reading instanceof Promise ? await reading : reading;
      if (chunks === null) break;
      const given = reader.data(chunks) ?? NOTHING;
      if (!reply.ended || given.byteLength > 0) return { done: false, value: given };
    }
    const elsewhere = reader.endElsewhere?.() ?? null;
    const end = elsewhere === null ? reader.end() : await elsewhere;
    if (end.outcome !== 'over_cap') reply.discard();
    if (!end.rest) return { done: true, value: end };
    this.#end = end;
    return { done: false, value: end.rest };
  }

  cut(cut: Cut): ReplyEnd | null {
    try {
      return this.#reader === null ? null : this.#reader.cut(cut);
    } catch (error) {
      if (error instanceof UpstreamFailure) return null;
      throw error;
    }
  }

  /** Returns false for an error status. */
  #accept(reply: UpstreamReply): boolean {
    const reader = (this.#reader = this.#exchange.reader(this.#offer));
    reader.head(reply.status, reply.headers);
    if (reply.status >= 400) return false;
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
    if (!this.#exchange.reform?.(this.#offer, reply.status, body)) throw failure;
    request.abort(failure);
    request.memory?.release();
    this.#reader = null;
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
