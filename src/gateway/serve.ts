import { type GatewayError, NEVER_ABORTED, ofGeneration } from '#wire';
import type { Frame, Leaving, MicroUsd } from '#billing';
import type { Call, Caller } from './call.ts';
import type { CallRequest } from './call-request.ts';
import {
  type Beginning,
  type GivenReply,
  type Idempotency,
  idempotencyError,
  type StoredReply,
} from './idempotency/idempotency.ts';
import { leastOf } from './payments/lock-payments.ts';
import { asksForMoney, PaymentNeeded } from './payments/payment-needed.ts';
import { NO_PAYMENTS, type PaidResource, type PaymentRequired, type Payments } from './payments/payments.ts';
import { newCallId } from './new-call-id.ts';
import type { Pipeline } from './pipeline.ts';
import { isQuoted } from './quotes/quote-call.ts';
import type { Quotes } from './quotes/quotes.ts';
import { toGatewayError } from './server/server.ts';

/** The call that answers a request, or the run of several calls. */
export interface Opened {
  /** Id of the call, or of the run's lock: the generation id. */
  readonly id: string;
  /** null for a run. */
  readonly call: Call | null;
  readonly frames: AsyncIterable<Frame>;
}

export interface OpenedCall extends Opened {
  readonly call: Call;
}

/** An answer that is written, except for its end where `end` is there. */
export interface Written {
  /** The reply that a repeat of the request is given; null where a repeat runs again. Asked only where it is kept. */
  kept(): GivenReply | null;
  /** Something was charged, or will be when the work ends: a repeat never runs. */
  readonly charged: boolean;
  /** Writes the end of the answer. It is called once the reply is kept: a client that saw the end can repeat it. */
  end?(): void;
}

/** How a repeat of a request is recognised. */
export interface RepeatKey {
  /** Each account has its own keys. See requestKey. */
  readonly key: string;
  /** Digest of what the request says. The same key with another digest is a conflict. */
  readonly bodyHash: string;
  /** The key to go on with where the kept reply is of an earlier round of this request; null repeats the reply. */
  nextKey?(reply: StoredReply): Promise<string | null>;
  /** Answers a key that is taken and has no reply, or throws. Default: throws idempotencyError. */
  taken?(by: TakenKey): Promise<void>;
}

export type TakenKey = Exclude<Beginning, { kind: 'new' | 'replay' }>;

/** A call that was refused for want of money. */
export interface Refusal {
  readonly error: GatewayError;
  /** A payment in place would help. False where a limit is too low. */
  readonly payable: boolean;
  /** The least that has to be paid, micro-USD; where a limit is too low, the lock of the cheapest offer. */
  readonly amount: MicroUsd;
  /** The ways to pay; none where `payable` is false. */
  terms(resource: PaidResource): Promise<PaymentRequired>;
}

/** One request of a client, as its door hands it over. */
export interface Asked<O extends Opened> {
  readonly caller: Caller;
  /** null where a repeat of the request runs again. Nothing is kept for callers without an account. */
  readonly repeats: RepeatKey | null;
  /** Aborts when the client leaves. A request that is kept runs to its end all the same. */
  readonly gone: Leaving;
  /** Prepares the call under `callId`. Throws or rejects with GatewayError. */
  open(callId: string, gone: Leaving): O | Promise<O>;
  /**
   * Writes the frames to the client. `kept`: the answer is kept, so it is written to its end whether or not the
   * client reads it. null: the client left, or the run ended without a reply. Throws what the call throws while
   * the answer can still be an error.
   */
  write(opened: O, kept: boolean): Promise<Written | null>;
  /** Writes the kept reply of a request that came before. */
  replay(reply: StoredReply): void | Promise<void>;
  /** Answers a call that was refused for want of money, or throws its error. */
  refuse(refusal: Refusal): Promise<Written | null>;
  /** Whether an error is of the door's own wire and passes as it is; default never. */
  isOwnError?(error: unknown): boolean;
}

interface ServeDeps {
  readonly idempotency: Pick<Idempotency, 'begin' | 'finish' | 'abandon'>;
  readonly payments: Payments;
  /** The terms of a call whose cost is known bind the gateway: they have the id of a quote. Default: they do not. */
  readonly quotes?: Pick<Quotes, 'give'>;
}

/**
 * Answers one request: repeats a kept reply, or opens the call, hands its frames to the door's writer and keeps what
 * came of it. Every door runs its billed requests through it. Throws what could not be answered: before anything
 * was written, or as `write` throws it. Errors of a billed call name its generation.
 */
export type Serve = <O extends Opened>(asked: Asked<O>) => Promise<void>;

export function createServe({ idempotency, payments, quotes }: ServeDeps): Serve {
  async function run<O extends Opened>(
    asked: Asked<O>,
    callId: string,
    gone: Leaving,
    kept: boolean,
  ): Promise<Written | null> {
    let opened: O | null = null;
    try {
      const opening = asked.open(callId, gone);
      opened = opening instanceof Promise ? await opening : opening;
      return await asked.write(opened, kept);
    } catch (error) {
      const refusal = refusalOf(payments, quotes, asked.caller, opened?.call ?? null, error);
      if (refusal !== null) return asked.refuse(refusal);
      // A free call has no record that could be looked up.
      if (opened === null || opened.call?.free || asked.isOwnError?.(error)) throw error;
      throw ofGeneration(toGatewayError(error), opened.id);
    }
  }

  async function runKept<O extends Opened>(asked: Asked<O>, use: Parameters<Idempotency['begin']>[0]): Promise<void> {
    let written: Written | null;
    try {
      written = await run(asked, use.callId, NEVER_ABORTED, true);
    } catch (error) {
      await idempotency.abandon(use);
      throw error;
    }
    try {
      const reply = written?.kept() ?? null;
      if (reply === null) await idempotency.abandon(use);
      else await idempotency.finish(use, reply, written!.charged);
    } finally {
      written?.end?.();
    }
  }

  return async (asked) => {
    const { caller, repeats } = asked;
    if (repeats === null || caller.anonymous) {
      (await run(asked, newCallId(), asked.gone, false))?.end?.();
      return;
    }
    const { account } = caller;
    const { bodyHash } = repeats;
    const allowedServices = caller.key?.allowedServices ?? null;
    for (let { key } = repeats; ;) {
      const use = { account, key, callId: newCallId(), bodyHash, allowedServices };
      // oxlint-disable-next-line no-await-in-loop -- each round follows from the reply of the one before
      const beginning = await idempotency.begin(use);
      if (beginning.kind === 'new') return runKept(asked, use);
      if (beginning.kind !== 'replay') {
        if (repeats.taken) return repeats.taken(beginning);
        throw idempotencyError(beginning.kind);
      }
      // oxlint-disable-next-line no-await-in-loop -- as above
      const next = (await repeats.nextKey?.(beginning)) ?? null;
      if (next === null) return asked.replay(beginning);
      key = next;
    }
  };
}

/** null for an error that money would not help against. */
function refusalOf(
  payments: Payments,
  quotes: ServeDeps['quotes'],
  caller: Caller,
  call: Call | null,
  error: unknown,
): Refusal | null {
  const payable = error instanceof PaymentNeeded;
  if (!payable && (call === null || call.free !== null || !asksForMoney(error))) return null;
  const amount = payable ? error.missing : leastOf(call!);
  const known = toGatewayError(error);
  return {
    error: known,
    payable,
    amount,
    async terms(resource) {
      const required = await (payable ? payments : NO_PAYMENTS).required({
        caller,
        error: known.message,
        resource,
        amount,
      });
      return call?.priced && quotes && required.accepts.length > 0 ? withQuote(required, call, quotes) : required;
    },
  };
}

/** Terms that hold until the quote is over, also where the price rises: clients echo `extra` with their payment. */
async function withQuote(
  required: PaymentRequired,
  call: Call,
  quotes: Pick<Quotes, 'give'>,
): Promise<PaymentRequired> {
  const least = leastOf(call) - call.lendable;
  const cheapest = call.candidates.filter(({ estimate, offer }) => estimate === least && isQuoted(offer));
  if (cheapest.length === 0) return required;
  // Terms without a quote are still terms.
  const id = call.quote ?? (await quotes.give(call, cheapest).catch(() => null))?.id;
  if (id === undefined) return required;
  const accepts = required.accepts.map((way) => ({
    ...way,
    extra: { ...(way['extra'] as object | undefined), quoteId: id },
  }));
  return { ...required, accepts };
}

/**
 * Prepares one call and begins to run it: what `open` does for a request that one call answers. Throws or rejects with
 * GatewayError.
 */
export function openCall(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  request: CallRequest,
  callId: string,
  gone: Leaving,
): OpenedCall | Promise<OpenedCall> {
  const prepared = pipeline.prepare(request, callId);
  const run = (call: Call) => ({ id: call.id, call, frames: pipeline.run(call, gone) });
  return prepared instanceof Promise ? prepared.then(run) : run(prepared);
}
