import { escrowOf, FEES, OPERATOR, treasuryOf, type AccountName, type Ledger, type MicroUsd } from '#billing';
import { makeCertain } from './certain-transfer.ts';
import { accountFeeOf, PayoutProblem, type Chain, type Payout, type SignedPayout } from './chain.ts';
import { TRANSIT } from './deposit-crediting.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

/** Ledger account of the money on its way out: no longer its account's, not yet gone from the treasury. */
export const outgoingOf = (network: string): AccountName => `outgoing:${network}`;

/** The rules of a chain that its payouts need. */
export interface PayoutPolicy {
  /** Kept of a withdrawal, beside its fee, where its payout opens a token account; none by default. */
  readonly tokenAccountFee?: MicroUsd;
}

export interface PayoutStepsOptions {
  readonly rows: WithdrawalRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** Why nothing is paid out over a chain; null while it is. */
  readonly haltOf: (network: string) => Promise<string | null>;
  readonly policyOf: (network: string) => PayoutPolicy;
  /**
   * Whether an account has money that its chain may still undo, and that may have been there at `at` (epoch
   * milliseconds).
   */
  readonly unfinal: (account: string, at: number) => Promise<boolean>;
  readonly now: () => number;
}

/** The steps of a withdrawal that need its chain. */
export interface PayoutSteps {
  /** Signs, and keeps what was signed before anybody else can have it. */
  sign(withdrawal: Withdrawal, chain: Chain): Promise<void>;
  /** Micro-USD that a treasury has by the books, and has not signed away. */
  uncommitted(network: string): Promise<MicroUsd>;
  /** Looks for a signed withdrawal on its chain. `resend`: sends it again, or signs anew, where it is not there. */
  look(withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void>;
}

/** By which the clocks of gateways may differ. */
const CLOCKS_MS = 60_000;

const payoutOf = ({ id, address, amount, fee }: Withdrawal): Payout => ({ id, to: address, amount: amount - fee });

/** Its fee without that of an account: the one that it had at first. */
const plainFeeOf = ({ fee, signed }: Withdrawal): MicroUsd => fee - accountFeeOf(signed);

/** The row as it is once this is kept. */
const keeping = (withdrawal: Withdrawal, signed: SignedPayout): Withdrawal => ({
  ...withdrawal,
  state: 'signed',
  fee: plainFeeOf(withdrawal) + accountFeeOf(signed),
  signed,
  transaction: signed.transaction,
});

export function createPayoutSteps(options: PayoutStepsOptions): PayoutSteps {
  const { rows, ledger, now } = options;

  const send = async (withdrawal: Withdrawal, signed: SignedPayout, chain: Chain): Promise<void> => {
    if (withdrawal.handedOut || (await options.haltOf(withdrawal.network)) !== null) return;
    const { transaction } = await chain.send(payoutOf(withdrawal), signed);
    if (transaction !== null && transaction !== withdrawal.transaction) await rows.noteSent(withdrawal.id, transaction);
  };

  /**
   * The money that a treasury has by the books, and has not signed away. What came in on another chain is not
   * there, and what is signed cannot be canceled any more.
   */
  const uncommitted = async (network: string): Promise<MicroUsd> =>
    -((await ledger.balance(treasuryOf(network)))?.available ?? 0n) - (await rows.signedAmount(network));

  /** The operator pays himself no fees. That of a lost payout was told to its owner: it does not grow. */
  const feeOfAccountOf = ({ account, network, signed }: Withdrawal): MicroUsd =>
    account === OPERATOR ? 0n : (signed?.tokenAccountFee ?? options.policyOf(network).tokenAccountFee ?? 0n);

  /**
   * null: the receiver cannot be paid, and the money goes back. What was signed before is lost then, or there is
   * nothing.
   */
  const signOrGiveBack = async (withdrawal: Withdrawal, chain: Chain): Promise<SignedPayout | null> => {
    const payout = {
      ...payoutOf({ ...withdrawal, fee: plainFeeOf(withdrawal) }),
      tokenAccountFee: feeOfAccountOf(withdrawal),
    };
    try {
      return await chain.sign(payout, withdrawal.signed);
    } catch (error) {
      if (!(error instanceof PayoutProblem)) throw error;
      await rows.move(withdrawal.id, withdrawal.state, 'returning', now(), error.message);
      return null;
    }
  };

  const sign = async (withdrawal: Withdrawal, chain: Chain): Promise<void> => {
    const { id, network, account, source, amount, fee } = withdrawal;
    if ((await options.haltOf(network)) !== null) return;
    // What goes from an address of the treasury to another stays there.
    const stays = source === TRANSIT && withdrawal.address === chain.treasury;
    if (!stays && (await uncommitted(network)) < amount - fee) return;
    // What was paid in leaves again only when its chain cannot undo it any more. What comes in after it was taken
    // does not count.
    if (source === escrowOf(account) && (await options.unfinal(account, withdrawal.updatedAt + CLOCKS_MS))) return;
    const signed = await signOrGiveBack(withdrawal, chain);
    if (signed !== null && (await rows.sign(id, signed))) await send(keeping(withdrawal, signed), signed, chain);
  };

  const look = async (withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void> => {
    const { id, network, amount, fee, transaction, address } = withdrawal;
    const signed = withdrawal.signed!;
    const sight = await chain.findPayout(payoutOf(withdrawal), signed, transaction);
    if (sight.state === 'paid') {
      await rows.noteHeight(id, sight.transaction, sight.height);
      if (!sight.final) return;
      const memo = `withdrawal to ${address}, transaction ${sight.transaction}`;
      await makeCertain(ledger, {
        id: `withdrawal-paid:${id}`,
        from: outgoingOf(network),
        to: treasuryOf(network),
        amount: amount - fee,
        memo,
      });
      if (fee > 0n)
        await makeCertain(ledger, {
          id: `withdrawal-fee:${id}`,
          from: outgoingOf(network),
          to: FEES,
          amount: fee,
          memo: `fee of withdrawal ${id}`,
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
    const again = await signOrGiveBack(withdrawal, chain);
    if (again === null) return;
    // Where no account is opened any more it pays more than what is lost, which was all that was set aside.
    const more = accountFeeOf(signed) - accountFeeOf(again);
    if (more > 0n && (await uncommitted(network)) < more) return;
    if (await rows.resign(id, signed, again)) await send(keeping(withdrawal, again), again, chain);
  };

  return { sign, look, uncommitted };
}
