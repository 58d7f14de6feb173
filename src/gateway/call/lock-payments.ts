import { escrowOf, type Ledger, withCarried } from '#billing';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import type { Primitive } from '#config';
import { GatewayError } from '#errors';
import { costsNothing, needsCredential, neverHadMoney, type Caller, type CallerBudget } from '#accounts';
import { RecentMap } from '#maps';
import { PaymentNeeded, refusesPayment, type Payments, type PaymentAttempt } from '#payments';
import { networkOf } from '#security';
import type { Call } from './call.ts';

interface Locking {
  readonly caller: Caller;
  readonly primitive?: Primitive;
  readonly payment?: PaymentAttempt | null;
  /** Id of the lock that pays for this one; null for none. With a parent, no payment is taken. */
  readonly parent: string | null;
}

type RefusedLock = Extract<Awaited<ReturnType<Ledger['lock']>>, { ok: false }>;

/**
 * Takes payments between the last check of a call and its lock. So nobody pays for a call that is refused for another
 * reason.
 */
export interface LockPayments {
  /** Whether a call can be paid over a chain. */
  readonly open: boolean;
  /**
   * Takes the payment before the first lock, for a caller with a payment and no credential. null if there is nothing to
   * wait for. Rejects if the payment fails.
   */
  prepay(locking: Locking, needed: MicroUsd): Promise<void> | null;
  /**
   * Takes the payment after a refused lock. `needed`: the least amount that the lock takes. Resolves if the lock should
   * be tried again. Rejects with `error`, or with the reason why the payment was not taken.
   */
  repay(locking: Locking, refusal: RefusedLock, needed: MicroUsd, error: Error): Promise<void>;
  /**
   * For work on a request before its lock. Rejects as the lock would if the caller cannot pay the least that the call
   * takes. Resolves with whether its account has money: a payment is not taken yet, and proves nothing.
   */
  canPay(call: Call): Promise<boolean>;
  /**
   * For what is stored for a call before its lock. Does what a refused lock would lead to: takes the payment, leaves
   * out the offers that are too dear, or rejects. The lock decides again.
   */
  payable(call: Call): Promise<Call>;
  /** Both functions in the form that the billing middleware expects. */
  readonly ofCalls: {
    prepay(call: Call): Promise<Call> | null;
    refuse(call: Call, refusal: RefusedLock): Call | Error | Promise<Call>;
  };
}

/** Payments whose callers have the budgets of the account that pays. */
export const payersWithBudgets = (payments: Payments, withBudgets: (paying: Caller) => Promise<Caller>): Payments => ({
  ...payments,
  callerOf: async (caller, paymentAttempt) => withBudgets(await payments.callerOf(caller, paymentAttempt)),
});

export function createLockPayments(payments: Payments, ledger: Ledger): LockPayments {
  async function take({ caller }: Locking, paymentAttempt: PaymentAttempt, needed: MicroUsd): Promise<void> {
    try {
      paymentAttempt.receipt = await payments.take(caller, paymentAttempt, needed);
    } catch (error) {
      if (refusesPayment(error))
        throw new PaymentNeeded(error.code, error.message, needed, { param: error.param, cause: error });
      throw error;
    }
  }

  async function checkBudgets(locking: Locking, needed: MicroUsd): Promise<void> {
    const { caller } = locking;
    // A lock of nothing is within every budget.
    if (needed === 0n) return;
    for (const { id, limit, carried } of caller.budgets ?? []) {
      const { spent, locked } = withCarried(await ledger.budget(id), carried);
      if (spent + locked + needed > limit)
        throw budgetError(caller, { id, limit, spent, locked }, neededOf(locking, needed));
    }
  }

  /** Checks the budgets first. The lock would also refuse the call, but only after the payment was taken. */
  async function takeWithinBudgets(locking: Locking, paymentAttempt: PaymentAttempt, needed: MicroUsd): Promise<void> {
    await checkBudgets(locking, needed);
    await take(locking, paymentAttempt, needed);
  }

  /** The money that a lock of a call could take, in the form of the refusal of one that wants more. */
  async function fundsOf({ caller, parent }: Call): Promise<RefusedLock> {
    if (parent !== null) {
      const above = await ledger.find(parent);
      if (above?.state !== 'held') return { ok: false, reason: 'parent_over', available: 0n };
      return { ok: false, reason: 'parent_exhausted', available: above.lendable - above.lent };
    }
    const balance = await ledger.balance(escrowOf(caller.account));
    if (balance === null) return { ok: false, reason: 'no_account', available: 0n };
    return { ok: false, reason: 'insufficient', available: balance.available };
  }

  const prepay: LockPayments['prepay'] = (locking, needed) => {
    const { caller, payment, parent } = locking;
    return caller.paying && payment && payment.receipt === null && parent === null && needed > 0n
      ? takeWithinBudgets(locking, payment, needed)
      : null;
  };

  const repay: LockPayments['repay'] = async (locking, { reason, available }, needed, error) => {
    const wantsMoney = reason === 'no_account' || reason === 'insufficient';
    if (!payments.open || !wantsMoney || locking.parent !== null) throw error;
    const { caller, payment = null } = locking;
    const missing = needed > available ? needed - available : 1n;
    if (payment?.fault)
      throw new PaymentNeeded(payment.fault.code, payment.fault.message, missing, { cause: payment.fault });
    if (payment === null || payment.receipt !== null || caller.anonymous)
      throw new PaymentNeeded(
        'insufficient_balance',
        reason === 'no_account' ? withoutBalance(needed) : error.message,
        missing,
      );
    await take(locking, payment, missing);
  };

  return {
    open: payments.open,
    prepay,
    repay,
    async canPay(call) {
      const { caller, payment } = call;
      const least = leastOf(call);
      if (caller.anonymous && least === 0n) throw needsCredential();
      // The lock above pays for it.
      if (call.parent !== null) return true;
      const funds = await fundsOf(call);
      const { available } = funds;
      if (available >= least || (payment && !payment.fault)) return available > 0n;
      const refused = refuseLock(call, funds, payments.open);
      if (refused instanceof Error) await repay(call, funds, least, refused);
      return false;
    },
    async payable(call) {
      // The lock that it continues still holds its money.
      if (call.continues !== null) return call;
      // In this order, because a payment does not help against a budget.
      if (call.parent === null) await checkBudgets(call, leastOf(call));
      for (let payable = call; ;) {
        const funds = await fundsOf(payable);
        if (mostOf(payable) <= funds.available) return payable;
        const refused = refuseLock(payable, funds, payments.open);
        if (!(refused instanceof Error)) payable = refused;
        else await repay(payable, funds, leastOf(payable), refused);
      }
    },
    ofCalls: {
      prepay(call) {
        const { anonymous, paying } = call.caller;
        // A free call needs no payment. It still needs an account, because its records and tasks must have an owner.
        if (anonymous && leastOf(call) === 0n) throw needsCredential();
        return paying ? (prepay(call, leastOf(call))?.then(() => call) ?? null) : null;
      },
      refuse(call, refusal) {
        const refused = refuseLock(call, refusal, payments.open);
        if (!(refused instanceof Error)) return refused;
        return repay(call, refusal, leastOf(call), refused).then(() => call);
      },
    },
  };
}

/** Words for the money that a call needs. */
const neededOf = ({ primitive }: Locking, needed: MicroUsd): string =>
  `estimated cost: ${formatUsd(needed)} USDC${primitive === 'model' ? MOST_OF_A_MODEL : ''}`;
const MOST_OF_A_MODEL = ', the most that this call may cost: a lower max_tokens, or a cheaper model, needs less';

interface LowBalance {
  /** The need of money, with its amount. */
  readonly needed: string;
  readonly available: MicroUsd;
  /** A sentence with a remedy that needs less money. */
  readonly less: string;
  /** Whether the account can be paid in over a chain. */
  readonly open: boolean;
}

/** The error of a balance that is too low. Its beginning stays, because clients match it. */
function lowBalance({ needed, available, less, open }: LowBalance): GatewayError {
  const remedy = open
    ? 'Add money on the page /dashboard/balance, or ask the operator to credit the account'
    : 'Ask the operator of this gateway to credit the account';
  return new GatewayError(
    'insufficient_balance',
    `Insufficient balance for ${needed}. ${formatUsd(available)} USDC are available. ${remedy}, then send the request again. ${less}`,
  );
}

const withoutBalance = (needed: MicroUsd) => `Insufficient balance for estimated cost: ${formatUsd(needed)} USDC`;

/** The lock of the cheapest offer, micro-USD. */
export const leastOf = ({ candidates, lendable }: Call): MicroUsd =>
  candidates.reduce((least, { estimate }) => (estimate < least ? estimate : least), candidates[0]!.estimate) + lendable;

/** The lock of a call, micro-USD: that of the dearest offer, because any of them may serve it. */
export const mostOf = ({ candidates, lendable }: Call): MicroUsd =>
  candidates.reduce((most, { estimate }) => (estimate > most ? estimate : most), 0n) + lendable;

/**
 * Decides what follows from a refused lock. Returns the call without the candidates that the balance or the limit
 * cannot pay, so an expensive fallback does not block a first choice that is affordable. If no candidate is affordable,
 * returns the error for the consumer. `open`: see LockPayments.
 */
export function refuseLock(call: Call, refusal: RefusedLock, open = false): Call | Error {
  const { candidates, lendable } = call;
  const affordable = (most: MicroUsd) => candidates.filter(({ estimate }) => estimate + lendable <= most);
  const estimated = `estimated cost: ${formatUsd(mostOf(call))} USDC`;
  switch (refusal.reason) {
    case 'no_account': {
      const free = affordable(0n);
      return free.length > 0 ? { ...call, candidates: free } : neverFunded();
    }
    case 'insufficient': {
      const paid = affordable(refusal.available);
      if (paid.length > 0 && paid.length < candidates.length) return { ...call, candidates: paid };
      const less =
        call.primitive === 'model'
          ? 'A lower max_tokens, or a cheaper model, needs less'
          : 'A cheaper service needs less';
      return lowBalance({ needed: estimated, available: refusal.available, less, open });
    }
    case 'budget_exceeded': {
      const { limit, spent, locked } = refusal.budget;
      const within = affordable(limit - spent - locked);
      return within.length > 0
        ? { ...call, candidates: within }
        : budgetError(call.caller, refusal.budget, neededOf(call, mostOf(call)));
    }
    case 'parent_over':
      return new GatewayError(
        'permission_denied',
        `The ${isOfBatch(call) ? 'batch' : 'parent call'} has ended, so nothing more can be paid from its budget`,
      );
    case 'parent_exhausted': {
      const paid = affordable(refusal.available);
      if (paid.length > 0 && paid.length < candidates.length) return { ...call, candidates: paid };
      const availableUsd = formatUsd(refusal.available);
      return new GatewayError(
        'insufficient_balance',
        isOfBatch(call)
          ? `The batch has ${availableUsd} USDC left of what it locked, too little for this line (${estimated}). A higher max_cost of the batch locks more`
          : `The budget of the run is too low for ${estimated}; ${availableUsd} USDC are left of it`,
      );
    }
    case 'too_deep':
      return tooDeep();
    case 'duplicate':
      return new GatewayError('internal', `Call id ${call.id} was used before`);
  }
}

/** Whether a call is a line of a batch, so that its parent is the batch and no call. */
const isOfBatch = ({ caller: { run } }: Call): boolean => run?.call !== undefined;

/** The error for a run whose lock of `budget` was refused. `noun`: its consumer's word for it. */
export function runRefusal(
  caller: Caller,
  refusal: RefusedLock,
  budget: MicroUsd,
  noun: 'run' | 'batch',
  open: boolean,
): GatewayError {
  switch (refusal.reason) {
    case 'no_account':
      return neverFunded();
    case 'insufficient':
      return lowBalance({
        needed: `the budget of this ${noun}: ${formatUsd(budget)} USDC`,
        available: refusal.available,
        less: 'A lower max_cost needs less',
        open,
      });
    case 'budget_exceeded':
      return budgetError(caller, refusal.budget, `the budget of this ${noun}: ${formatUsd(budget)} USDC`);
    case 'parent_over':
      return new GatewayError('permission_denied', `The parent call of this ${noun} has ended`);
    case 'parent_exhausted':
      return new GatewayError(
        'insufficient_balance',
        `The budget of the run is too low for another of ${formatUsd(budget)} USDC`,
      );
    case 'too_deep':
      return tooDeep();
    case 'duplicate':
      return new GatewayError('internal', 'Internal error');
  }
}

const tooDeep = () => new GatewayError('permission_denied', 'Calls can be nested at most 8 deep');

/** The refusal of an account that was never funded. It says what to do, because a smaller call would not help. */
const neverFunded = () =>
  new GatewayError(
    'escrow_not_setup',
    'Escrow account not set up: this account was never funded. Ask the operator for credit, or fund it, then retry',
  );

type FullBudget = Extract<RefusedLock, { reason: 'budget_exceeded' }>['budget'];

const NAMES: Readonly<Record<CallerBudget['scope'], string>> = {
  key: 'Spending limit of this API key',
  member: 'Budget of this member',
  account: 'Budget of the account',
  operator: "The operator's budget for the account",
};

/** Says who can raise each budget. A payment does not help here. */
const RAISED_BY: Readonly<Record<CallerBudget['scope'], string>> = {
  key: 'Whoever manages the keys of the account raises it, on the page /dashboard/keys or with PATCH /api/v1/keys/{hash}',
  member:
    'An admin or owner of the organisation raises it, on the page /dashboard/organisation or with PATCH /api/v1/members/{member}',
  account:
    'An admin or owner of the account raises it, on the page /dashboard/organisation or with PATCH /api/v1/limits',
  operator: 'The operator alone raises it, with PATCH /admin/v1/accounts/{id}/limits',
};

/**
 * The error for a lock that exceeds a budget of the caller. `needed` completes the message: `estimated cost: 0.01
 * USDC`. On HTTP wires the body has `budget` with the same facts.
 */
function budgetError(
  { budgets = [] }: Pick<Caller, 'budgets'>,
  { id, limit, spent, locked }: FullBudget,
  needed: string,
): GatewayError {
  const full = budgets.find((budget) => budget.id === id);
  const { scope: budgetScope, resetsAt, tag } = full ?? { scope: 'key', resetsAt: null, tag: undefined };
  const tagText = tag && `${tag.name}=${tag.value}`;
  const ofTag = tagText === undefined ? '' : ` for calls tagged ${tagText}`;
  const resets = resetsAt === null ? null : new Date(resetsAt).toISOString();
  const used = `${formatUsd(spent)} of ${formatUsd(limit)} USDC are spent and ${formatUsd(locked)} locked by running calls`;
  const anew = resets === null ? 'it is never reset' : `it is reset at ${resets}`;
  return new GatewayError(
    'insufficient_balance',
    `${NAMES[budgetScope]}${ofTag} is too low for ${needed}. ${used}; ${anew}. ${RAISED_BY[budgetScope]}`,
    {
      body: {
        budget: {
          of: budgetScope,
          ...(tagText === undefined ? {} : { tag: tagText }),
          limit_usd: formatUsd(limit),
          spent_usd: formatUsd(spent),
          locked_usd: formatUsd(locked),
          resets_at: resets,
        },
      },
    },
  );
}

/** Accounts that are known to have, or to have had, money. */
const FUNDED_MAX = 10_000;

/**
 * Finds the network under which a request counts besides its account, because the account costs nothing and never had
 * money: whoever has one such account has any number of them. null for other accounts.
 */
type UnfundedNetwork = (caller: Caller, address: string) => string | null | Promise<string | null>;

/** `used`: told of each request of an account that never had money. */
export function createUnfundedNetwork(
  ledger: Pick<Ledger, 'isFunded'>,
  used: (account: string) => void,
): UnfundedNetwork {
  const funded = new RecentMap<true>(FUNDED_MAX);
  return ({ account, paying }, address) => {
    if (!costsNothing(account) || paying !== undefined || funded.get(account) === true) return null;
    return neverHadMoney(ledger, account).then(
      (isUnfunded) => {
        if (isUnfunded) {
          used(account);
          return networkOf(address);
        }
        funded.set(account, true);
        return null;
      },
      // A ledger that is away refuses calls itself.
      () => null,
    );
  };
}

/** The error of a call that counts in a budget with an unknown sum; null for other calls. */
export function unsummedError({ budgets = [], run }: Caller): GatewayError | null {
  if (run !== undefined) return null;
  for (const { unsummed, tag } of budgets)
    if (unsummed !== undefined)
      return new GatewayError(
        'service_unavailable',
        `What was spent in a budget${tag ? ` of the tag ${tag.name}=${tag.value}` : ''} cannot be read at the moment, so calls that count in it wait: retry shortly`,
        { retryAfterS: UNSUMMED_RETRY_S, cause: unsummed },
      );
  return null;
}

const UNSUMMED_RETRY_S = 3;
