import { OPERATOR, type AccountName } from '#billing';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import { ChainUnavailable, PayoutUnreadable, WithdrawalProblem } from './chain.ts';
import { TRANSIT } from './books.ts';
import { CANCELED, type NewWithdrawal, type Withdrawal, type WithdrawalState } from './withdrawal-rows.ts';
import {
  balanceIs,
  CLAIM_MS,
  createWithdrawalSteps,
  NOT_PAID_IN,
  type WithdrawalStepsOptions,
} from './withdrawal-steps.ts';

export interface Withdrawals {
  /**
   * Stores a withdrawal and takes its amount from its source. A repeated request with the same id and the same values
   * resolves with the stored withdrawal. Rejects with WithdrawalProblem, also if the chain is not open.
   */
  request(request: NewWithdrawal): Promise<Withdrawal>;
  /**
   * Moves money from a treasury to another address of the operator. The limits of withdrawals do not apply. It may be
   * repeated with the same id.
   */
  requestOwn(request: Pick<NewWithdrawal, 'id' | 'network' | 'address' | 'amount'>): Promise<Withdrawal>;
  /** Micro-USD that a treasury has by the books, without signed payouts. No more can leave it now. */
  uncommitted(network: string): Promise<MicroUsd>;
  /** Gives back a withdrawal that is not signed yet. null if it is too late. */
  cancel(id: string): Promise<Withdrawal | null>;
  /**
   * Makes the gateway submit a withdrawal that its owner was to submit. The handed-out text is the same payout, so it
   * pays once. null if nothing is left to submit.
   */
  submit(id: string): Promise<Withdrawal | null>;
  /** Makes all steps that are possible now. Rejects with ChainUnavailable. */
  carryOn(withdrawal: Withdrawal): Promise<void>;
  /** Gives back all withdrawals of a source that are not signed yet. */
  recall(source: AccountName, reason: string): Promise<void>;
  /**
   * Looks on the chain for all signed withdrawals that are not known to be final. Signs and sends nothing. One that
   * cannot be read is passed over: if it was paid, the comparison finds the difference.
   */
  pollSigned(network: string): Promise<void>;
}

const POLLS_AT_ONCE = 8;
const UNDER_WAY: ReadonlySet<WithdrawalState> = new Set(['requested', 'debited', 'queued', 'signed']);
/** The present fee. A stored withdrawal keeps its own fee. */
const feeNow = (policyOf: WithdrawalStepsOptions['policyOf'], { network, account }: NewWithdrawal): MicroUsd =>
  account === OPERATOR ? 0n : (policyOf(network).fee ?? 0n);

const tooLittle = (reason: string) =>
  new WithdrawalProblem('insufficient_balance', `Insufficient balance: ${reason}`, 'amount');

/**
 * Checks the account and the balance before anything is stored. A stored refusal is needed only if the balance changes
 * at the same moment.
 */
async function checkSource(
  { ledger, rows }: Pick<WithdrawalStepsOptions, 'ledger' | 'rows'>,
  { account, source, amount }: Pick<NewWithdrawal, 'account' | 'source' | 'amount'>,
): Promise<void> {
  if (await rows.isStopped(account))
    throw new WithdrawalProblem(
      'permission_denied',
      'This account is frozen by the operator of this gateway: it cannot make calls or withdraw. Ask the operator',
    );
  const available = (await ledger.balance(source))?.available ?? 0n;
  if (available < amount) throw tooLittle(balanceIs(available));
}

/** Throws every error except one about a payout that cannot be read. */
function passOver(error: unknown): void {
  if (!(error instanceof PayoutUnreadable)) throw error;
}

export function createWithdrawals(options: WithdrawalStepsOptions): Withdrawals {
  const { rows, chainOf, policyOf, now } = options;
  const { reread, advance, poll, uncommitted, paidInLeft, takenToday } = createWithdrawalSteps(options);

  const check = async (request: NewWithdrawal): Promise<void> => {
    const { network, address, amount, source } = request;
    const fee = feeNow(policyOf, request);
    const chain = chainOf(network);
    if (chain === null)
      throw new WithdrawalProblem('service_unavailable', `${network} cannot be reached at the moment. Retry later`);
    const fault = chain.addressFault(address);
    if (fault !== null) throw new WithdrawalProblem('invalid_request', fault, 'address');
    const { minimum, dailyMax } = policyOf(network);
    if (amount <= fee)
      throw new WithdrawalProblem(
        'invalid_request',
        `The amount must be higher than the fee of ${formatUsd(fee)} USDC`,
        'amount',
      );
    if (amount < minimum)
      throw new WithdrawalProblem('invalid_request', `A withdrawal is at least ${formatUsd(minimum)} USDC`, 'amount');
    const today = await takenToday(source);
    if (today + amount > dailyMax)
      throw new WithdrawalProblem(
        'rate_limit_exceeded',
        `At most ${formatUsd(dailyMax)} USDC can be withdrawn per day; ${formatUsd(dailyMax > today ? dailyMax - today : 0n)} are left`,
        'amount',
      );
    const remaining = await paidInLeft(request);
    if (amount > remaining)
      throw new WithdrawalProblem(
        'insufficient_balance',
        `${NOT_PAID_IN}: ${formatUsd(remaining > 0n ? remaining : 0n)} USDC of this balance`,
        'amount',
      );
    const halted = await options.haltOf(network);
    if (halted !== null)
      throw new WithdrawalProblem(
        'service_unavailable',
        `Withdrawals over ${network} are stopped until the operator of this gateway has checked them`,
      );
    await checkSource(options, request);
  };

  /** Checks what is not stored yet. false: it is stored by now. */
  const isToStore = async (request: NewWithdrawal): Promise<boolean> => {
    try {
      await check(request);
      return true;
    } catch (error) {
      // A repeat at the same moment may have been stored during the check, which then found its own money gone.
      if ((await rows.find(request.id)) === null) throw error;
      return false;
    }
  };

  return {
    async request(request) {
      const before = await rows.find(request.id);
      if (before === null && (await isToStore(request)))
        await rows.insert(request, now() + CLAIM_MS, feeNow(policyOf, request));
      const row = await reread(request.id);
      const same = (['network', 'account', 'source', 'address', 'amount', 'handedOut'] as const).every(
        (key) => row[key] === request[key],
      );
      if (!same)
        throw new WithdrawalProblem(
          'idempotency_conflict',
          'This idempotency key was already used for another withdrawal. Use a new key',
        );
      const reached = await advance(
        row,
        ({ state }) => state !== 'requested' && state !== 'debited' && state !== 'returning',
      );
      if (reached.state === 'refused') throw tooLittle(reached.reason!);
      if (reached.state === 'returned' && before === null)
        throw new WithdrawalProblem('rate_limit_exceeded', reached.reason ?? 'It was given back', 'amount');
      return reached;
    },

    async requestOwn(request) {
      await rows.insert({ ...request, account: OPERATOR, source: TRANSIT, handedOut: false }, now() + CLAIM_MS);
      return advance(await reread(request.id), ({ state }) => state !== 'requested' && state !== 'debited');
    },

    uncommitted,

    async cancel(id) {
      for (const from of ['debited', 'queued'] as const) {
        if (await rows.move(id, from, 'returning', now(), CANCELED)) return advance(await reread(id), () => false);
      }
      const row = await reread(id);
      return row.reason === CANCELED && (row.state === 'returning' || row.state === 'returned') ? row : null;
    },

    async submit(id) {
      if (await rows.takeBack(id)) return reread(id);
      const row = await reread(id);
      return !row.handedOut && UNDER_WAY.has(row.state) ? row : null;
    },

    async carryOn(withdrawal) {
      await advance(withdrawal, () => false);
    },

    async recall(source, reason) {
      for (;;) {
        const page = await rows.unsigned(source);
        if (page.length === 0) return;
        for (const { id } of page) {
          for (const from of ['debited', 'queued'] as const) await rows.move(id, from, 'returning', now(), reason);
          // Also if another caller began to give it back: the money must be back before the undone deposit is taken.
          await advance(await reread(id), ({ state }) => state !== 'returning');
        }
      }
    },

    async pollSigned(network) {
      const chain = chainOf(network);
      if (chain === null) throw new ChainUnavailable(`${network} is not open yet`);
      for (let after = ''; ;) {
        const page = await rows.signed(network, after);
        for (let at = 0; at < page.length; at += POLLS_AT_ONCE)
          await Promise.all(page.slice(at, at + POLLS_AT_ONCE).map((row) => poll(row, chain, false).catch(passOver)));
        if (page.length === 0) return;
        after = page.at(-1)!.id;
      }
    },
  };
}
