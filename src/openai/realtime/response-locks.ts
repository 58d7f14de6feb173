import { TransientMap } from '#maps';
import { GatewayError } from '#errors';
import type { Offer } from '#catalog';
import type { Call } from '#call';
import { boundsAt, covers, type Growth, NO_GROWTH, plus, type ResponseBounds } from './conversation-size.ts';
import type { ResponseCall } from './response-call.ts';

interface ResponseLocksOptions {
  /**
   * Locks the most that a response with these bounds can cost. Rejects with GatewayError. `boundsAt`: the bounds at an
   * offer.
   */
  readonly open: (boundsAt: (offer: Offer) => ResponseBounds, connect?: Connect) => Promise<ResponseCall>;
  /** How long a lock may wait for a response, in milliseconds. */
  readonly waitsMs: number;
}

export type Connect = (offer: Offer, call: Call, signal: AbortSignal) => Promise<void>;

/** Tokens that a conversation may grow by before a lock of it is too small; a quarter of the conversation if more. */
const HEADROOM_TOKENS = 1_024;

/**
 * The locks of a session: those that wait for a response, and those of responses that have begun. A response may begin
 * only where a lock waits for it, which is large enough for the conversation so far.
 */
export class ResponseLocks {
  /** Bytes of the instructions and tools of the session, which are a part of each prompt. */
  base = 0;
  /** The most that the conversation can have, without what runs. */
  grown: Growth = NO_GROWTH;
  /** The most that responses that were asked for have beside the conversation. */
  extra: Growth = NO_GROWTH;
  outputMax: number;
  /** Responses that the client has asked for, and that have not begun. */
  promised = 0;
  readonly running = new TransientMap<string, ResponseCall>();
  /**
   * Called if the lock of a response has ended before the response: it took too long, the operator ended it, or the
   * gateway stops.
   */
  onCut: (id: string, error: unknown) => void = () => {};
  readonly #offer: () => Offer;
  readonly #options: ResponseLocksOptions;
  #waiting: ResponseCall[] = [];
  #queue: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** `offer`: the one that serves the session. `outputMax`: see the member. */
  constructor(offer: () => Offer, outputMax: number, options: ResponseLocksOptions) {
    this.#offer = offer;
    this.outputMax = outputMax;
    this.#options = options;
  }

  /** The first lock, which also chooses the offer and opens the session there. */
  async begin(outputMaxAt: (offer: Offer) => number, connect: Connect): Promise<void> {
    this.#wait(
      await this.#options.open(
        (offer) => boundsAt(offer, plus(this.grown, headroom(offer, this.grown)), outputMaxAt(offer)),
        connect,
      ),
    );
  }

  /**
   * Makes sure that so many locks wait, each large enough for a response to the conversation so far. null if they do.
   * Rejects with GatewayError if the money for them is not there.
   */
  ensure(count: number): Promise<void> | null {
    if (this.#ready().length >= count) return null;
    const ensured = this.#queue.then(() => this.#ensure(count));
    this.#queue = ensured.catch(() => {});
    return ensured;
  }

  get isReady(): boolean {
    return this.#waiting.length > 0;
  }

  /** Takes the largest lock that waits, for a response that has begun; null if none waits. */
  take(id: string): ResponseCall | null {
    this.promised = Math.max(0, this.promised - 1);
    const call = this.#waiting.toSorted((a, b) => sizeOf(b) - sizeOf(a))[0] ?? null;
    if (call === null) return null;
    this.#waiting = this.#waiting.filter((other) => other !== call);
    call.respond(id, this.#conversation());
    this.running.set(id, call);
    const over = (error: unknown) => {
      if (call.ended || !this.running.has(id)) return;
      this.ended(id, call);
      this.onCut(id, error);
    };
    call.settled.then(() => over(null), over);
    return call;
  }

  /** A response has ended, and its output is a part of the conversation. */
  ended(id: string, { grows }: ResponseCall): void {
    this.running.delete(id);
    this.grown = plus(this.grown, grows);
    if (this.running.size === 0 && this.promised === 0) this.extra = NO_GROWTH;
  }

  close(): void {
    this.#isClosed = true;
    for (const call of [...this.#waiting, ...this.running.values()]) call.abandon();
    this.#waiting = [];
  }

  #needed(): ResponseBounds {
    return boundsAt(this.#offer(), this.#most(), this.outputMax);
  }

  #conversation(): Growth {
    return plus(plus(this.grown, this.extra), { ...NO_GROWTH, bytes: this.base });
  }

  /** The conversation with what runs, which may become a part of it. */
  #most(): Growth {
    let most = this.#conversation();
    for (const { bounds } of this.running.values())
      most = plus(most, { ...NO_GROWTH, items: 1, audioTokens: bounds.budget.completionCap });
    return most;
  }

  #ready(): readonly ResponseCall[] {
    const needed = this.#needed();
    return this.#waiting.filter(({ bounds }) => covers(bounds, needed));
  }

  async #ensure(count: number): Promise<void> {
    for (let rounds = 0; ; rounds++) {
      const ready = this.#ready();
      if (ready.length >= count) {
        for (const call of this.#waiting) if (!ready.includes(call)) this.#drop(call);
        return;
      }
      if (rounds >= ROUNDS_MAX)
        throw new GatewayError('service_unavailable', 'The model was changed meanwhile: open another session');
      const most = this.#most();
      const { outputMax } = this;
      // The smaller lock is given back only once the larger one is there.
      this.#wait(await this.#options.open((offer) => boundsAt(offer, plus(most, headroom(offer, most)), outputMax)));
    }
  }

  #wait(call: ResponseCall): void {
    if (this.#isClosed) return call.abandon();
    this.#waiting.push(call);
    const late = setTimeout(() => this.#drop(call), this.#options.waitsMs);
    const over = () => {
      clearTimeout(late);
      this.#waiting = this.#waiting.filter((other) => other !== call);
    };
    call.settled.then(over, over);
  }

  #drop(call: ResponseCall): void {
    if (!this.#waiting.includes(call)) return;
    this.#waiting = this.#waiting.filter((other) => other !== call);
    call.abandon();
  }
}

/** Locks that are made in a row. More are needed only if the model has become another one. */
const ROUNDS_MAX = 8;

const sizeOf = ({ bounds }: ResponseCall): number => bounds.budget.promptTokensMax + bounds.budget.completionCap;

function headroom({ model }: Offer, { bytes, audioTokens }: Growth): Growth {
  const tokens = Math.max(HEADROOM_TOKENS, Math.ceil((bytes + audioTokens) / 4));
  return model!.inputModalities.includes('audio')
    ? { ...NO_GROWTH, audioTokens: tokens }
    : { ...NO_GROWTH, bytes: tokens };
}
