import { escrowOf, treasuryOf, type AccountName, type Ledger, formatUsd, MICRO_USD_MAX, type MicroUsd } from '#billing';
import { ChainUnavailable, PayoutProblem, type Chain, type Payout, type SignedPayout } from './chain.ts';
import { WithdrawalProblem } from './withdrawal-problem.ts';
import type { NewWithdrawal, Withdrawal, WithdrawalRows, WithdrawalState } from './withdrawal-rows.ts';

/** What is on its way out over a chain: no longer its account's, not yet gone from the treasury. */
export const outgoingOf = (network: string): AccountName => `outgoing:${network}`;

export interface WithdrawalPolicy {
  readonly minimum: MicroUsd;
  /** Of one source within a day. */
  readonly dailyMax: MicroUsd;
}

export interface WithdrawalsOptions {
  readonly rows: WithdrawalRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** null where it is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  readonly policyOf: (network: string) => WithdrawalPolicy;
  /** Why nothing is paid out over a chain; null while it is. */
  readonly haltOf: (network: string) => Promise<string | null>;
  /**
   * Whether an account has money that its chain may still undo, and that may have been there at `at` (epoch
   * milliseconds).
   */
  readonly unfinal: (account: string, at: number) => Promise<boolean>;
  /**
   * What came into an account over chains: more of its balance cannot go out over them. The rest is credit that the
   * operator gave, to be spent here.
   */
  readonly paidIn: (account: string) => Promise<MicroUsd>;
  readonly now: () => number;
}

export interface Withdrawals {
  /**
   * Writes a withdrawal down and takes its amount from its source. Asking again with the same id and the same words
   * resolves with the one that is there. Rejects with WithdrawalProblem; with ChainUnavailable never, as nothing is
   * asked of a chain.
   */
  request(asked: NewWithdrawal): Promise<Withdrawal>;
  /** Gives one back that is not signed yet. null where it is too late. */
  cancel(id: string): Promise<Withdrawal | null>;
  /**
   * Has the gateway submit one that its owner was to submit: what was handed out pays the same, once. null where
   * there is nothing to submit any more.
   */
  submit(id: string): Promise<Withdrawal | null>;
  /** As many steps as can be made now. Rejects with ChainUnavailable. */
  carryOn(withdrawal: Withdrawal): Promise<void>;
  /** Gives back what was taken from a source and is not signed yet. */
  recall(source: AccountName, reason: string): Promise<void>;
  /** Looks at everything that is signed and not seen final. Nothing is signed or sent. */
  lookAtSigned(network: string): Promise<void>;
}

const DAY_MS = 86_400_000;
/** As long as one takes that is requested. */
const CLAIM_MS = 15_000;
/** By which the clocks of gateways may differ. */
const CLOCKS_MS = 60_000;

export function createWithdrawals(options: WithdrawalsOptions): Withdrawals {
  const { rows, ledger, chainOf, policyOf, now } = options;
  const payoutOf = ({ id, address, amount }: Withdrawal): Payout => ({ id, to: address, amount });
  const reread = async (id: string): Promise<Withdrawal> => {
    const row = await rows.find(id);
    if (row === null) throw new Error(`withdrawal ${id} is gone`);
    return row;
  };

  const debit = async ({ id, source, network, amount, address }: Withdrawal): Promise<void> => {
    const memo = `withdrawal over ${network} to ${address}`;
    const taken = await ledger.transfer({
      id: `withdrawal:${id}`,
      from: source,
      to: outgoingOf(network),
      amount,
      memo,
    });
    if (taken.ok || taken.reason === 'duplicate') {
      if (await rows.move(id, 'requested', 'debited', now() + CLAIM_MS)) return;
      // Somebody else tried it when the money was not there yet, and has said so meanwhile.
      await rows.move(id, 'refused', 'returning', now());
    } else await rows.move(id, 'requested', 'refused', null, `The balance is ${formatUsd(taken.available)} USDC`);
  };

  /** What of a balance can still go out. */
  const paidInLeft = async ({ source, account }: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd> =>
    source === escrowOf(account) ? (await options.paidIn(account)) - (await rows.takenSince(source, 0)) : MICRO_USD_MAX;

  /**
   * Those that were debited at the same time see each other here: none goes past the limit, and both may be given back.
   */
  const queue = async (withdrawal: Withdrawal): Promise<void> => {
    const { id, source, network } = withdrawal;
    const { dailyMax } = policyOf(network);
    if ((await paidInLeft(withdrawal)) < 0n) await rows.move(id, 'debited', 'returning', now(), NOT_PAID_IN);
    else if ((await rows.takenSince(source, now() - DAY_MS)) > dailyMax)
      await rows.move(id, 'debited', 'returning', now(), `More than ${formatUsd(dailyMax)} USDC a day`);
    else await rows.move(id, 'debited', 'queued', now());
  };

  const giveBack = async ({ id, source, network, amount, reason }: Withdrawal): Promise<void> => {
    await ledger.transfer({
      id: `withdrawal-back:${id}`,
      from: outgoingOf(network),
      to: source,
      amount,
      memo: reason ?? 'given back',
    });
    await rows.move(id, 'returning', 'returned', null);
  };

  const send = async (withdrawal: Withdrawal, signed: SignedPayout, chain: Chain): Promise<void> => {
    if (withdrawal.handedOut || (await options.haltOf(withdrawal.network)) !== null) return;
    const { transaction } = await chain.send(payoutOf(withdrawal), signed);
    if (transaction !== null && transaction !== withdrawal.transaction) await rows.noteSent(withdrawal.id, transaction);
  };

  /**
   * What a treasury has by the books, and has not signed away. What came in on another chain is not there, and what
   * is signed cannot be canceled any more.
   */
  const uncommitted = async (network: string): Promise<MicroUsd> =>
    -((await ledger.balance(treasuryOf(network)))?.available ?? 0n) - (await rows.signedAmount(network));

  /**
   * null: the receiver cannot be paid, and the money goes back. What was signed before is lost then, or there is
   * nothing.
   */
  const signOrGiveBack = async (
    withdrawal: Withdrawal,
    chain: Chain,
    previous: SignedPayout | null,
  ): Promise<SignedPayout | null> => {
    try {
      return await chain.sign(payoutOf(withdrawal), previous);
    } catch (error) {
      if (!(error instanceof PayoutProblem)) throw error;
      await rows.move(withdrawal.id, withdrawal.state, 'returning', now(), error.message);
      return null;
    }
  };

  /** Signs, and keeps what was signed before anybody else can have it. */
  const sign = async (withdrawal: Withdrawal, chain: Chain): Promise<void> => {
    const { id, network, account, source, amount } = withdrawal;
    if ((await options.haltOf(network)) !== null || (await uncommitted(network)) < amount) return;
    // What was paid in leaves again only when its chain cannot undo it any more. What comes in after it was taken
    // is none of it.
    if (source === escrowOf(account) && (await options.unfinal(account, withdrawal.updatedAt + CLOCKS_MS))) return;
    const signed = await signOrGiveBack(withdrawal, chain, null);
    if (signed !== null && (await rows.sign(id, signed)))
      await send({ ...withdrawal, state: 'signed', signed, transaction: signed.transaction }, signed, chain);
  };

  const look = async (withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void> => {
    const { id, network, amount, transaction, address } = withdrawal;
    const signed = withdrawal.signed!;
    const sight = await chain.findPayout(payoutOf(withdrawal), signed, transaction);
    if (sight.state === 'paid') {
      await rows.noteHeight(id, sight.transaction, sight.height);
      if (!sight.final) return;
      const memo = `withdrawal to ${address}, transaction ${sight.transaction}`;
      await ledger.transfer({
        id: `withdrawal-paid:${id}`,
        from: outgoingOf(network),
        to: treasuryOf(network),
        amount,
        memo,
      });
      await rows.markPaid(id, sight.transaction, sight.height);
      return;
    }
    if (!resend) return;
    if (sight.state === 'open') return send(withdrawal, signed, chain);
    if (withdrawal.handedOut) {
      await rows.move(id, 'signed', 'returning', now(), `It was not submitted in time: ${sight.reason}`);
      return;
    }
    // The chain has decided that the one before can never pay; whoever signs first is kept, and the others' texts
    // are thrown away unsent.
    const again = await signOrGiveBack(withdrawal, chain, signed);
    if (again !== null && (await rows.resign(id, signed, again)))
      await send({ ...withdrawal, signed: again, transaction: again.transaction }, again, chain);
  };

  const step = async (withdrawal: Withdrawal): Promise<void> => {
    const chain = chainOf(withdrawal.network);
    switch (withdrawal.state) {
      case 'requested':
        return debit(withdrawal);
      case 'debited':
        return queue(withdrawal);
      case 'queued':
        return chain ? sign(withdrawal, chain) : undefined;
      case 'signed':
        return chain ? look(withdrawal, chain, true) : undefined;
      case 'returning':
        return giveBack(withdrawal);
      case 'paid':
      case 'returned':
      case 'refused':
        return undefined;
    }
  };

  /** Steps until one changes nothing, or what comes next is not this one's to do. */
  const advance = async (withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal> => {
    let row = withdrawal;
    for (let steps = 0; steps < STEPS_MAX && !until(row); steps += 1) {
      await step(row);
      const next = await reread(row.id);
      if (next.state === row.state) return next;
      row = next;
    }
    return row;
  };

  const check = async (asked: NewWithdrawal): Promise<void> => {
    const { network, address, amount, source } = asked;
    const chain = chainOf(network);
    if (chain === null)
      throw new WithdrawalProblem('service_unavailable', `${network} cannot be reached at the moment: retry later`);
    const fault = chain.addressFault(address);
    if (fault !== null) throw new WithdrawalProblem('invalid_request', fault, 'address');
    const { minimum, dailyMax } = policyOf(network);
    if (amount < minimum)
      throw new WithdrawalProblem('invalid_request', `A withdrawal is at least ${formatUsd(minimum)} USDC`, 'amount');
    const taken = await rows.takenSince(source, now() - DAY_MS);
    if (taken + amount > dailyMax)
      throw new WithdrawalProblem(
        'rate_limit_exceeded',
        `At most ${formatUsd(dailyMax)} USDC can be withdrawn a day; ${formatUsd(dailyMax > taken ? dailyMax - taken : 0n)} are left`,
        'amount',
      );
    const left = await paidInLeft(asked);
    if (amount > left)
      throw new WithdrawalProblem(
        'insufficient_balance',
        `${NOT_PAID_IN}: ${formatUsd(left > 0n ? left : 0n)} USDC of this one`,
        'amount',
      );
    const halted = await options.haltOf(network);
    if (halted !== null)
      throw new WithdrawalProblem(
        'service_unavailable',
        `Withdrawals over ${network} are stopped until its operator has looked at it`,
      );
  };

  return {
    async request(asked) {
      const before = await rows.find(asked.id);
      if (before === null) {
        await check(asked);
        await rows.insert(asked, now() + CLAIM_MS);
      }
      const row = await reread(asked.id);
      const same = (['network', 'account', 'source', 'address', 'amount', 'handedOut'] as const).every(
        (key) => row[key] === asked[key],
      );
      if (!same)
        throw new WithdrawalProblem(
          'idempotency_conflict',
          'This idempotency key was used for another withdrawal: use a new key for a new one',
        );
      const reached = await advance(
        row,
        ({ state }) => state !== 'requested' && state !== 'debited' && state !== 'returning',
      );
      if (reached.state === 'refused')
        throw new WithdrawalProblem('insufficient_balance', `Insufficient balance: ${reached.reason}`, 'amount');
      if (reached.state === 'returned' && before === null)
        throw new WithdrawalProblem('rate_limit_exceeded', reached.reason ?? 'It was given back', 'amount');
      return reached;
    },

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
          // Also of what somebody else has begun to give back: it has to be there before what was undone is taken.
          await advance(await reread(id), ({ state }) => state !== 'returning');
        }
      }
    },

    async lookAtSigned(network) {
      const chain = chainOf(network);
      if (chain === null) throw new ChainUnavailable(`${network} is not open yet`);
      for (let after = ''; ;) {
        const page = await rows.signed(network, after);
        for (let at = 0; at < page.length; at += LOOKS_AT_ONCE)
          await Promise.all(page.slice(at, at + LOOKS_AT_ONCE).map((row) => look(row, chain, false)));
        if (page.length === 0) return;
        after = page.at(-1)!.id;
      }
    },
  };
}

const STEPS_MAX = 8;
const LOOKS_AT_ONCE = 8;
const NOT_PAID_IN = 'Of a balance only what was paid in over chains can be withdrawn';
const UNDER_WAY: ReadonlySet<WithdrawalState> = new Set(['requested', 'debited', 'queued', 'signed']);
/** The reason of a withdrawal that its owner took back. */
export const CANCELED = 'Canceled';
