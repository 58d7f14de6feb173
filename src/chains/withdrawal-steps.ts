import { escrowOf, formatUsd, MICRO_USD_MAX, treasuryOf, type AccountName, type Ledger, type MicroUsd } from '#billing';
import { PayoutProblem, type Chain, type Payout, type SignedPayout } from './chain.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

/** Ledger account of the money on its way out: no longer its account's, not yet gone from the treasury. */
export const outgoingOf = (network: string): AccountName => `outgoing:${network}`;

export interface WithdrawalPolicy {
  readonly minimum: MicroUsd;
  /** Of one source within a day. */
  readonly dailyMax: MicroUsd;
}

export interface WithdrawalStepsOptions {
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

/** A withdrawal on its way, from a row in the table to money on its chain. */
export interface WithdrawalSteps {
  /** Rejects with Error where no withdrawal has this id. */
  reread(id: string): Promise<Withdrawal>;
  /** Makes steps until `until` holds, or one changes nothing. Rejects with ChainUnavailable. */
  advance(withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal>;
  /** Looks for a signed withdrawal on its chain. `resend`: sends it again, or signs anew, where it is not there. */
  look(withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void>;
  /** The part of a source's balance that can still go out. */
  paidInLeft(of: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd>;
  /** Micro-USD that were taken from a source within a day, and not given back. */
  takenToday(source: AccountName): Promise<MicroUsd>;
}

const DAY_MS = 86_400_000;
/** For so long nobody else carries on with a withdrawal that is being requested. */
export const CLAIM_MS = 15_000;
/** By which the clocks of gateways may differ. */
const CLOCKS_MS = 60_000;
const STEPS_MAX = 8;
export const NOT_PAID_IN = 'Of a balance only what was paid in over chains can be withdrawn';

const payoutOf = ({ id, address, amount }: Withdrawal): Payout => ({ id, to: address, amount });

export function createWithdrawalSteps(options: WithdrawalStepsOptions): WithdrawalSteps {
  const { rows, ledger, chainOf, policyOf, now } = options;

  const reread = async (id: string): Promise<Withdrawal> => {
    const row = await rows.find(id);
    if (row === null) throw new Error(`withdrawal ${id} is gone`);
    return row;
  };

  const takenToday = (source: AccountName) => rows.takenSince(source, now() - DAY_MS);

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

  const paidInLeft = async ({ source, account }: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd> =>
    source === escrowOf(account) ? (await options.paidIn(account)) - (await rows.takenSince(source, 0)) : MICRO_USD_MAX;

  /**
   * Those that were debited at the same time see each other here: none goes past the limit, and both may be given back.
   */
  const queue = async (withdrawal: Withdrawal): Promise<void> => {
    const { id, source, network } = withdrawal;
    const { dailyMax } = policyOf(network);
    if ((await paidInLeft(withdrawal)) < 0n) await rows.move(id, 'debited', 'returning', now(), NOT_PAID_IN);
    else if ((await takenToday(source)) > dailyMax)
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

  return { reread, advance, look, paidInLeft, takenToday };
}
