import { formatUsd, type Ledger, type LockResult, type MicroUsd, withCarried } from '#billing';
import { needsCredential } from '../anonymous.ts';
import type { Call, Caller } from '../call.ts';
import { budgetError } from '../limits/budget-error.ts';
import { refuseLock } from '../pipeline.ts';
import { PaymentNeeded, refusesPayment } from './payment-needed.ts';
import type { Payments, PaymentAttempt } from './payments.ts';

/** A call or a run that is to be locked. */
interface Locking {
  readonly caller: Caller;
  readonly payment?: PaymentAttempt | null;
  /** Id of the lock that pays for this one; null for none. With a parent, no payment is taken. */
  readonly parent: string | null;
}

type Refusal = Extract<LockResult, { ok: false }>;

/**
 * Takes payments between the last check of a call and its lock. So nobody pays for a call that is refused for another
 * reason.
 */
export interface LockPayments {
  /**
   * Takes the payment before the first lock, for a caller with a payment and no credential. null if there is nothing to
   * wait for. Rejects if the payment fails.
   */
  prepay(of: Locking, needed: MicroUsd): Promise<void> | null;
  /**
   * Takes the payment after a refused lock. `needed`: the least amount that the lock takes. Resolves if the lock should
   * be tried again. Rejects with `error`, or with the reason why the payment was not taken.
   */
  repay(of: Locking, refusal: Refusal, needed: MicroUsd, error: Error): Promise<void>;
  /** Both functions in the form that the billing middleware expects. */
  readonly ofCalls: {
    prepay(call: Call): Promise<void> | null;
    refuse(call: Call, refusal: Refusal): Call | Error | Promise<Call>;
  };
}

export function createLockPayments(payments: Payments, ledger: Pick<Ledger, 'budget'>): LockPayments {
  async function take({ caller }: Locking, paymentAttempt: PaymentAttempt, needed: MicroUsd): Promise<void> {
    try {
      paymentAttempt.receipt = await payments.take(caller, paymentAttempt, needed);
    } catch (error) {
      if (refusesPayment(error))
        throw new PaymentNeeded(error.code, error.message, needed, { param: error.param, cause: error });
      throw error;
    }
  }

  /** Checks the budgets first. The lock would also refuse the call, but only after the payment was taken. */
  async function takeWithinBudgets(of: Locking, paymentAttempt: PaymentAttempt, needed: MicroUsd): Promise<void> {
    const { caller } = of;
    for (const { id, limit, carried } of caller.budgets ?? []) {
      const { spent, locked } = withCarried(await ledger.budget(id), carried);
      if (spent + locked + needed > limit)
        throw budgetError(caller, { id, limit, spent, locked }, `estimated cost: ${formatUsd(needed)} USDC`);
    }
    await take(of, paymentAttempt, needed);
  }

  const prepay: LockPayments['prepay'] = (of, needed) => {
    const { caller, payment, parent } = of;
    return caller.paying && payment && payment.receipt === null && parent === null && needed > 0n
      ? takeWithinBudgets(of, payment, needed)
      : null;
  };

  const repay: LockPayments['repay'] = async (of, { reason, available }, needed, error) => {
    const wantsMoney = reason === 'no_account' || reason === 'insufficient';
    if (!payments.open || !wantsMoney || of.parent !== null) throw error;
    const { caller, payment = null } = of;
    const missing = needed > available ? needed - available : 1n;
    if (payment?.fault)
      throw new PaymentNeeded(payment.fault.code, payment.fault.message, missing, { cause: payment.fault });
    if (payment === null || payment.receipt !== null || caller.anonymous)
      throw new PaymentNeeded(
        'insufficient_balance',
        reason === 'no_account' ? withoutBalance(needed) : error.message,
        missing,
      );
    await take(of, payment, missing);
  };

  return {
    prepay,
    repay,
    ofCalls: {
      prepay(call) {
        const { anonymous, paying } = call.caller;
        // A free call needs no payment. It still needs an account, because its records and tasks must have an owner.
        if (anonymous && leastOf(call) === 0n) throw needsCredential();
        return paying ? prepay(call, leastOf(call)) : null;
      },
      refuse(call, refusal) {
        const refused = refuseLock(call, refusal);
        if (!(refused instanceof Error)) return refused;
        return repay(call, refusal, leastOf(call), refused).then(() => call);
      },
    },
  };
}

const withoutBalance = (needed: MicroUsd) => `Insufficient balance for estimated cost: ${formatUsd(needed)} USDC`;

/** The lock of the cheapest offer, micro-USD. */
export const leastOf = ({ candidates, lendable }: Call): MicroUsd =>
  candidates.reduce((least, { estimate }) => (estimate < least ? estimate : least), candidates[0]!.estimate) + lendable;
