import type { GatewayError } from '#errors';
import type { Ledger } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import type { Primitive } from '#config';
import {
  type AccountStates,
  type Caller,
  countedByTags,
  type EndUsers,
  memberOf,
  refuseStopped,
  tagsOfCall,
} from '#accounts';
import type { PaymentAttempt } from '#payments';
import { type LockPayments, runRefusal, unsummedError } from './lock-payments.ts';
import { asksFor, unasked } from './ask-first.ts';
import { type CallRequest, newCallId } from './call.ts';
import type { RunningCalls } from './running-calls.ts';

interface RunRequest {
  /** A newCallId(), if the id had to be known beforehand. */
  readonly id?: string;
  readonly caller: Caller;
  readonly requestId: string;
  readonly primitive: Primitive;
  /** The name that the consumer called. */
  readonly service: string;
  /** The most that all calls of the run may cost together. */
  readonly budget: MicroUsd;
  /** Milliseconds that the run may take. */
  readonly timeoutMs: number;
  readonly stream: boolean;
  /** Members of the request that name its calls, besides the caller. Default: none. */
  readonly names?: Pick<CallRequest, 'metadata' | 'endUser'>;
  /** The consumer's word for it, for errors and the record of the lock; default `run`. */
  readonly noun?: 'run' | 'batch';
  readonly payment?: PaymentAttempt | null;
  /** Called if the operator ends the run, whose calls end too; it must then be closed. Default: it cannot be ended. */
  readonly onEnded?: (reason: GatewayError) => void;
}

/**
 * Several calls that the gateway makes for one request. Each has its own settlement, and all are paid from one lock
 * (`CallRequest.parent` is `id`).
 */
export interface Run {
  /** Id of the lock. The run and its calls are found by it. */
  readonly id: string;
  /**
   * Gives back the rest of the budget. `outcome`: how the run ended, stored with the release. Never rejects: if the
   * release fails, the lock expires later.
   */
  close(outcome: string): Promise<void>;
}

export interface Runs {
  /** Rejects with GatewayError if the account is stopped, or if the lock is refused, like a call. */
  open(request: RunRequest): Promise<Run>;
}

interface RunsOptions {
  readonly ledger: Ledger;
  readonly now: () => number;
  /** Milliseconds from the end of `timeoutMs` to the expiry of the lock. */
  readonly graceMs: number;
  /** Default: nothing can be paid in place. */
  readonly payments?: LockPayments;
  /** Absent: nobody ends a run. */
  readonly running?: RunningCalls;
  /** Absent: no account is stopped. */
  readonly states?: AccountStates;
  /** Default `digest`. */
  readonly endUsers?: EndUsers;
}

export function createRuns(options: RunsOptions): Runs {
  const { ledger, now, graceMs, payments, running, states, endUsers = 'digest' } = options;
  return {
    async open({ id = newCallId(), noun = 'run', caller: opener, requestId, payment = null, onEnded, ...runRequest }) {
      const { primitive, service, budget, timeoutMs, stream, names = { metadata: null } } = runRequest;
      const tags = tagsOfCall(opener, names, endUsers);
      const caller = countedByTags(opener, tags);
      const unsummed = unsummedError(caller);
      if (unsummed !== null) throw unsummed;
      const startedAt = now();
      const parent = caller.run?.parent ?? null;
      const locking = { caller, payment, parent };
      const lock = () =>
        ledger.lock({
          id,
          account: caller.account,
          amount: budget,
          lendable: budget,
          // The run itself charges nothing.
          prices: [],
          expiresAt: startedAt + timeoutMs + graceMs,
          detail: JSON.stringify({
            primitive,
            service,
            run: true,
            ...(noun === 'batch' ? { batch: true } : {}),
            key: caller.key?.hash ?? null,
            member: memberOf(caller),
            requestId,
            stream,
            tags,
            ...(parent ? { parent } : {}),
          }),
          ...(parent === null ? {} : { parent }),
          ...(caller.budgets ? { budgets: caller.budgets } : {}),
        });
      // A run within a call spends money that is locked already, and a caller without an account cannot be stopped.
      const stopped = parent === null && !caller.anonymous && states && (await refuseStopped(states, caller.account));
      if (stopped) throw stopped;
      if (parent === null && asksFor(caller, budget)) throw unasked(caller, budget, `a ${noun} is several calls`);
      await payments?.prepay(locking, budget);
      for (let result = await lock(); !result.ok; result = await lock()) {
        const error = runRefusal(caller, result, budget, noun, payments?.open ?? false);
        if (!payments) throw error;
        await payments.repay(locking, result, budget, error);
      }
      const atWork = onEnded ? { place: -1, call: { id, parent }, stop: onEnded } : null;
      if (atWork !== null) running?.add(atWork);
      return {
        id,
        async close(outcome) {
          if (atWork !== null) running?.remove(atWork);
          const detail = JSON.stringify({ outcome, durationMs: now() - startedAt });
          await ledger.release({ id, detail }).catch(() => {});
        },
      };
    },
  };
}
