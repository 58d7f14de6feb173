import { randomUUID } from 'node:crypto';
import { GatewayError, GatewayStopping } from '#wire';
import { createCounter } from '#gateway';
import type { Questions } from './translators/modern-to-legacy/questions.ts';
import type { SessionCall } from './translators/modern-to-legacy/session-call.ts';

/** A call at a legacy server that waits until its modern client has answered the server's questions. */
interface HeldCall {
  readonly account: string;
  readonly offerId: string;
  readonly method: string;
  /** The called tool, prompt or resource; null for other methods. */
  readonly name: string | null;
  readonly call: SessionCall;
  readonly questions: Questions;
}

type HeldFor = Pick<HeldCall, 'account' | 'offerId' | 'method' | 'name'>;

/** Calls that wait between two rounds. Each can be taken once only, so that one answer pays for one piece of work. */
export interface HeldCalls {
  /**
   * Keeps a call until it is taken, and cancels it after `ttlMs`. Returns its id. Throws GatewayError if too many calls
   * are held.
   */
  hold(held: HeldCall): string;
  /** Takes a call. Null if it is gone or belongs to another request; `elsewhere` if another gateway holds it. */
  take(id: string, wanted: HeldFor): HeldCall | 'elsewhere' | null;
  readonly size: number;
  /** Cancels all calls. After this, no call is kept. */
  close(): void;
}

export interface HeldCallsOptions {
  /** Id of this gateway in its installation. */
  readonly nodeId: string;
  /** Default 5 min. */
  readonly ttlMs?: number;
  /** Most held calls of one account. Default 100. */
  readonly perAccountMax?: number;
  /** Most held calls at one offer. Each keeps one or two connections to it open. Default 256. */
  readonly perOfferMax?: number;
  /** Most held calls in all. Default 10,000. */
  readonly max?: number;
  /** Most characters of all questions together. Default 256 Mi. */
  readonly charsMax?: number;
}

const EXPIRED = new Error('the client did not answer in time');
const CLOSED = new Error('the gateway is shutting down');

export function createHeldCalls(options: HeldCallsOptions): HeldCalls {
  const {
    nodeId,
    ttlMs = 5 * 60_000,
    perAccountMax = 100,
    perOfferMax = 256,
    max = 10_000,
    charsMax = 256 * 1024 * 1024,
  } = options;
  const byId = new Map<string, { readonly held: HeldCall; readonly timer: NodeJS.Timeout; readonly chars: number }>();
  let allChars = 0;
  let closed = false;
  const ofAccount = createCounter();
  const ofOffer = createCounter();
  const prefix = `${Buffer.from(nodeId).toString('base64url')}.`;

  function remove(id: string): HeldCall | null {
    const entry = byId.get(id);
    if (!entry) return null;
    byId.delete(id);
    clearTimeout(entry.timer);
    allChars -= entry.chars;
    ofAccount.add(entry.held.account, -1);
    ofOffer.add(entry.held.offerId, -1);
    return entry.held;
  }

  return {
    hold(held) {
      const again = { retryAfterS: 1 };
      if (closed) throw new GatewayStopping();
      if (ofAccount.of(held.account) >= perAccountMax)
        throw new GatewayError(
          'rate_limit_exceeded',
          `This account has ${perAccountMax} calls that wait for input, which is the maximum`,
          again,
        );
      const { chars } = held.questions;
      if (ofOffer.of(held.offerId) >= perOfferMax || byId.size >= max || allChars + chars > charsMax)
        throw new GatewayError('service_unavailable', 'Too many calls wait for input', again);
      const id = `${prefix}${randomUUID()}`;
      const timer = setTimeout(() => remove(id)?.call.cancel(EXPIRED), ttlMs).unref();
      byId.set(id, { held, timer, chars });
      allChars += chars;
      ofAccount.add(held.account, 1);
      ofOffer.add(held.offerId, 1);
      return id;
    },
    take(id, { account, offerId, method, name }) {
      if (!id.startsWith(prefix)) return 'elsewhere';
      const held = byId.get(id)?.held;
      const same =
        held?.account === account && held.offerId === offerId && held.method === method && held.name === name;
      return same ? remove(id) : null;
    },
    get size() {
      return byId.size;
    },
    close() {
      closed = true;
      for (const id of byId.keys()) remove(id)?.call.cancel(CLOSED);
    },
  };
}
