import { escrowOf, FEES, OPERATOR, treasuryOf, type AccountName, type Ledger, type MicroUsd } from '#billing';
import { makeCertain } from './certain-transfer.ts';
import { accountFeeOf, PayoutProblem, PayoutUnreadable, type Chain, type Payout, type SignedPayout } from './chain.ts';
import { TRANSIT } from './deposit-crediting.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

/** The ledger account of outgoing money: it was taken from its account and is still in the treasury. */
export const outgoingOf = (network: string): AccountName => `outgoing:${network}`;

/** The rules of a chain for payouts. */
export interface PayoutPolicy {
  /** Additional fee of a withdrawal whose payout opens a token account. Default: none. */
  readonly tokenAccountFee?: MicroUsd;
}

export interface PayoutStepsOptions {
  readonly rows: WithdrawalRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** The reason why payouts over a chain are stopped; null if they are not. */
  readonly haltOf: (network: string) => Promise<string | null>;
  readonly policyOf: (network: string) => PayoutPolicy;
  /**
   * Whether an account has money that its chain may still undo, from a deposit that existed at `at` (epoch
   * milliseconds).
   */
  readonly unfinal: (account: string, at: number) => Promise<boolean>;
  readonly now: () => number;
}

/** The steps of a withdrawal that need its chain. */
export interface PayoutSteps {
  /** Signs a payout and stores the signed text before it is sent. */
  sign(withdrawal: Withdrawal, chain: Chain): Promise<void>;
  /** Micro-USD that a treasury has by the books, without signed payouts. */
  uncommitted(network: string): Promise<MicroUsd>;
  /**
   * Looks for a signed withdrawal on its chain. `resend`: if it is not there, sends it again or signs it again. Rejects
   * with ChainUnavailable, and with PayoutUnreadable.
   */
  look(withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void>;
}

/** The tolerated difference between the clocks of gateways. */
const CLOCKS_MS = 60_000;

const payoutOf = ({ id, address, amount, fee }: Withdrawal): Payout => ({ id, to: address, amount: amount - fee });

/** The fee without the fee of a token account, as at the request. */
const plainFeeOf = ({ fee, signed }: Withdrawal): MicroUsd => fee - accountFeeOf(signed);

/** The row as it is after the signed payout is stored. */
const keeping = (withdrawal: Withdrawal, signed: SignedPayout): Withdrawal => ({
  ...withdrawal,
  state: 'signed',
  fee: plainFeeOf(withdrawal) + accountFeeOf(signed),
  signed,
  transaction: signed.transaction,
});

/** The reason in a withdrawal of an account that the operator has frozen or closed. */
const STOPPED = 'The account is frozen or closed';

export function createPayoutSteps(options: PayoutStepsOptions): PayoutSteps {
  const { rows, ledger, now } = options;

  const send = async (withdrawal: Withdrawal, signed: SignedPayout, chain: Chain): Promise<void> => {
    if (withdrawal.handedOut || (await options.haltOf(withdrawal.network)) !== null) return;
    const { transaction } = await chain.send(payoutOf(withdrawal), signed);
    if (transaction !== null && transaction !== withdrawal.transaction) await rows.noteSent(withdrawal.id, transaction);
  };

  /**
   * Payouts are limited to this amount: money that came in on another chain is not in this treasury, and signed payouts
   * can no longer be canceled.
   */
  const uncommitted = async (network: string): Promise<MicroUsd> =>
    -((await ledger.balance(treasuryOf(network)))?.available ?? 0n) - (await rows.signedAmount(network));

  /**
   * The fee of a token account. The operator's own withdrawals have none. A repeated payout keeps the fee of the lost
   * one, because the owner was told that fee.
   */
  const feeOfAccountOf = ({ account, network, signed }: Withdrawal): MicroUsd =>
    account === OPERATOR ? 0n : (signed?.tokenAccountFee ?? options.policyOf(network).tokenAccountFee ?? 0n);

  /**
   * Signs the payout. null: the receiver cannot be paid, so the money is given back. That is safe, because an earlier
   * signed payout is lost or does not exist.
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
    if (await rows.isStopped(account)) {
      await rows.move(id, withdrawal.state, 'returning', now(), STOPPED);
      return;
    }
    if ((await options.haltOf(network)) !== null) return;
    // A transfer between two addresses of the treasury does not reduce the treasury.
    const stays = source === TRANSIT && withdrawal.address === chain.treasury;
    if (!stays && (await uncommitted(network)) < amount - fee) return;
    // Deposits can leave only after their chain can no longer undo them. Deposits that came after this withdrawal do
    // not count.
    if (source === escrowOf(account) && (await options.unfinal(account, withdrawal.updatedAt + CLOCKS_MS))) return;
    const signed = await signOrGiveBack(withdrawal, chain);
    if (signed !== null && (await rows.sign(id, signed))) await send(keeping(withdrawal, signed), signed, chain);
  };

  const look = async (withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void> => {
    const { id, network, amount, fee, transaction, address, signed } = withdrawal;
    if (signed === null) throw new PayoutUnreadable(`withdrawal ${id} is signed, and its signed payout is not stored`);
    const observation = await chain.findPayout(payoutOf(withdrawal), signed, transaction);
    if (observation.state === 'paid') {
      await rows.noteHeight(id, observation.transaction, observation.height);
      if (!observation.final) return;
      const memo = `withdrawal to ${address}, transaction ${observation.transaction}`;
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
      await rows.markPaid(id, observation.transaction, observation.height);
      return;
    }
    if (!resend) return;
    if (observation.state === 'open') return send(withdrawal, signed, chain);
    if (withdrawal.handedOut) {
      await rows.move(id, 'signed', 'returning', now(), `It was not submitted in time: ${observation.reason}`);
      return;
    }
    // The chain has decided that the earlier payout can never pay. Of concurrent new signatures the first stored one
    // counts, and the others are dropped unsent.
    const again = await signOrGiveBack(withdrawal, chain);
    if (again === null) return;
    // If the account no longer has to be opened, the new payout is larger than the lost one. Only the lost amount was
    // reserved.
    const more = accountFeeOf(signed) - accountFeeOf(again);
    if (more > 0n && (await uncommitted(network)) < more) return;
    if (await rows.resign(id, signed, again)) await send(keeping(withdrawal, again), again, chain);
  };

  return { sign, look, uncommitted };
}
