import { formatUsd, type Ledger, type LockResult, type MicroUsd, withCarried } from '#billing';
import { needsCredential } from '../anonymous.ts';
import type { Call, Caller } from '../call.ts';
import { budgetError } from '../limits/budget-error.ts';
import { refuseLock } from '../pipeline.ts';
import { PaymentNeeded, refusesPayment } from './payment-needed.ts';
import type { Payments, PaymentSlip } from './payments.ts';

/** A call or a run that is to be locked. */
interface Locking {
  readonly caller: Caller;
  readonly payment?: PaymentSlip | null;
  /** Id of the held lock whose money it is made of: then nothing is paid. */
  readonly parent: string | null;
}

type Refusal = Extract<LockResult, { ok: false }>;

/**
 * Takes payments between the last check of a call and its lock, so that what is refused for another reason is never
 * paid for.
 */
export interface LockPayments {
  /**
   * Before the first lock: for those who came by their payment alone. null where nothing has to be waited for.
   * Rejects as the payment does.
   */
  prepay(of: Locking, needed: MicroUsd): Promise<void> | null;
  /**
   * A lock that was refused and would take `needed` at least: rejects with `error` or with why it was not paid.
   * Resolved, the lock is to be tried again.
   */
  repay(of: Locking, refusal: Refusal, needed: MicroUsd, error: Error): Promise<void>;
  /** Both for a call, as billing takes them. */
  readonly ofCalls: {
    prepay(call: Call): Promise<void> | null;
    refuse(call: Call, refusal: Refusal): Call | Error | Promise<Call>;
  };
}

export function createLockPayments(payments: Payments, ledger: Pick<Ledger, 'budget'>): LockPayments {
  async function take({ caller }: Locking, slip: PaymentSlip, needed: MicroUsd): Promise<void> {
    try {
      slip.receipt = await payments.take(caller, slip, needed);
    } catch (error) {
      if (refusesPayment(error))
        throw new PaymentNeeded(error.code, error.message, needed, { param: error.param, cause: error });
      throw error;
    }
  }

  /** The lock would refuse it, too, but after the payment. */
  async function takeWithinBudgets(of: Locking, slip: PaymentSlip, needed: MicroUsd): Promise<void> {
    const { caller } = of;
    for (const { id, limit, carried } of caller.budgets ?? []) {
      const { spent, locked } = withCarried(await ledger.budget(id), carried);
      if (spent + locked + needed > limit)
        throw budgetError(caller, { id, limit, spent, locked }, `estimated cost: ${formatUsd(needed)} USDC`);
    }
    await take(of, slip, needed);
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
        // What is free is not paid for, and not given to strangers either: what it leaves behind has to be somebody's.
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
