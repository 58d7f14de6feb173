import { setTimeout as pause } from 'node:timers/promises';
import {
  escrowOf,
  OPERATOR,
  OPERATOR_TREASURY,
  SUSPENSE,
  treasuryOf,
  type AccountName,
  type Ledger,
  type MicroUsd,
} from '#billing';
import {
  ChainUnavailable,
  PaymentProblem,
  type Chain,
  type ChainEvent,
  type Incoming,
  type SignedPayment,
} from './chain.ts';
import type { Deposit, DepositRows } from './deposit-rows.ts';

/** What stands for money that a chain took back after it was spent: the operator's loss. */
export const LOSSES: AccountName = treasuryOf('losses');

export interface DepositPolicy {
  /** Blocks after which a payment is credited, its own included. */
  readonly confirmations: number;
  /** The most that is credited in all while its chain may still undo it. */
  readonly unfinalMax: MicroUsd;
}

/** How soon somebody should look: `error` now, `warn` if it stays. */
export type ProblemLevel = 'info' | 'warn' | 'error';

export interface DepositsOptions {
  readonly rows: DepositRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** null where it is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  readonly policyOf: (network: string) => DepositPolicy;
  /** How long the bringer of a payment waits for it to be credited. */
  readonly waitMs: number;
  /** Gives back what is to be paid out to an account and not signed yet. */
  readonly recall: (account: string, reason: string) => Promise<void>;
  /** Whether a memo has the name of another account than this one, be it known or not. */
  readonly namesAnother: (memo: string, account: string) => boolean;
  /** Who a plain transfer is for: an account that exists, or null. */
  readonly attribute: (event: Incoming, network: string) => Promise<string | null>;
  /** Told of what somebody should look at. */
  readonly onProblem: (level: ProblemLevel, problem: string, of: Readonly<Record<string, unknown>>) => void;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Whom a payment is credited to, and the request that it came with where nothing else says who asks. */
export interface PaymentOwner {
  readonly account: string;
  readonly request: string | null;
}

export interface Deposits {
  /** Where a payment is known already. */
  find(payment: SignedPayment): Promise<Deposit | null>;
  /**
   * Keeps a payment that was verified, gives it to the chain and credits what arrives. Resolves with where it is
   * then, which may be `received`: it is not known yet, and somebody goes on looking. Rejects with PaymentProblem
   * where it failed, or is another account's or another request's.
   */
  take(payment: SignedPayment, owner: PaymentOwner): Promise<Deposit>;
  /** One look at a deposit, as far as it can be brought now. Rejects with ChainUnavailable. */
  carryOn(deposit: Deposit): Promise<void>;
  /** Books what came in and is final. */
  arrived(event: Incoming, network: string): Promise<void>;
  /**
   * Credits what is in suspense and came from an address, on one network or on any (null), to the account that has
   * proven to have it. Resolves with what it was.
   */
  attribute(address: string, account: string, network: string | null): Promise<readonly Deposit[]>;
  /** Credits one that is in suspense. null where there is none of this id. */
  attributeOne(id: string, account: string): Promise<Deposit | null>;
}

/** Longer than it takes to give a payment to the chain and to wait for it. */
const CLAIM_MARGIN_MS = 15_000;
const FIRST_PAUSE_MS = 40;
const PAUSE_MAX_MS = 1_000;
/** Between two looks at what is credited and not final. */
const UNFINAL_LOOK_MS = 10_000;

export function createDeposits(options: DepositsOptions): Deposits {
  const { rows, ledger, chainOf, policyOf, waitMs, now, signal, onProblem } = options;
  const toldAt = new Map<string, number>();
  /** Payments that this process is bringing home. */
  const driven = new Map<string, Promise<void>>();

  const idOf = (event: Incoming, network: string) => event.paymentId ?? `${network}/${event.id}`;
  const accountOf = ({ account }: Deposit) => (account === null ? SUSPENSE : ledgerNameOf(account));

  const credit = async (deposit: Deposit, final: boolean): Promise<void> => {
    const { id, network, credited } = deposit;
    // Whoever comes second finds the transfer made, by the same row.
    await ledger.transfer({
      id: `deposit:${id}`,
      from: treasuryOf(network),
      to: accountOf(deposit),
      amount: credited!,
      memo: `deposit over ${network} from ${deposit.payer}, transaction ${deposit.transaction}`,
    });
    if (final) await rows.markFinal(id);
    else await rows.markCredited(id, now() + UNFINAL_LOOK_MS);
  };

  const settle = async (deposit: Deposit, event: ChainEvent): Promise<void> => {
    const { id, network, state } = deposit;
    const policy = policyOf(network);
    if (!event.final && event.confirmations < policy.confirmations) return;
    if (state === 'received' || state === 'failed') {
      const noted = await rows.noteEvent(id, event, policy.unfinalMax, now() + CLAIM_MARGIN_MS);
      if (noted) return credit(noted, event.final);
      const current = await rows.find(id);
      // Somebody else has noted it meanwhile; where they are still the same it is more than is lent out.
      if (current && current.state !== 'received' && current.state !== 'failed') await settle(current, event);
      return;
    }
    if (state !== 'crediting' && state !== 'credited' && state !== 'final') return;
    await rows.notePlace(id, event);
    if (deposit.credited !== event.amount)
      onProblem('error', 'a deposit arrived with another amount than was credited', {
        deposit: id,
        credited: deposit.credited,
        arrived: event.amount,
      });
    if (state === 'crediting' || (state === 'credited' && event.final)) await credit(deposit, event.final);
  };

  const reverse = async (deposit: Deposit): Promise<void> => {
    const { id, network, account, credited } = deposit;
    const memo = `the chain took back deposit ${id}`;
    await ledger.transfer({ id: `deposit-lost:${id}`, from: LOSSES, to: treasuryOf(network), amount: credited!, memo });
    if (account !== null) await options.recall(account, 'a deposit of this account was undone by its chain');
    // What is there is taken back; for the rest the operator stands.
    const from = accountOf(deposit);
    let available = (await ledger.balance(from))?.available ?? 0n;
    for (let attempt = 0; attempt < RECOVERIES && available > 0n; attempt += 1) {
      const amount = available < credited! ? available : credited!;
      const taken = await ledger.transfer({ id: `deposit-recovered:${id}`, from, to: LOSSES, amount, memo });
      if (taken.ok || taken.reason === 'duplicate') break;
      available = taken.available;
    }
    await rows.endReversal(id);
    onProblem('error', 'a credited deposit was undone by its chain', { deposit: id, account, credited });
  };

  const lost = async (deposit: Deposit, reason: string): Promise<void> => {
    const { id, state } = deposit;
    if (state === 'received') {
      // Nobody can have credited it meanwhile: then it would not be in this state.
      await rows.markFailed(id, reason);
      return;
    }
    // It may have been credited by somebody who did not come to say so.
    if (state === 'crediting') await credit(deposit, false);
    if ((state === 'crediting' || state === 'credited') && (await rows.beginReversal(id, reason)))
      await reverse(deposit);
  };

  /** Asks the chain, and does what follows. Resolves with whether the payment may still come. */
  const look = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<boolean> => {
    const sight = await chain.find(payment, deposit.transaction);
    if (sight.state === 'settled') await settle(deposit, sight.event);
    else if (sight.state === 'lost') await lost(deposit, sight.reason);
    return sight.state === 'open';
  };

  const submit = async (id: string, chain: Chain, payment: SignedPayment): Promise<string | null> => {
    const { transaction } = await chain.submit(payment);
    if (transaction !== null) await rows.noteTransaction(id, transaction);
    return transaction;
  };

  /**
   * Says, once in a while, why payments cannot be given to a chain: a treasury without gas is put right by nobody
   * else than its operator.
   */
  const notSubmitted = (network: string, error: ChainUnavailable): void => {
    if (now() - (toldAt.get(network) ?? 0) < TELL_AGAIN_MS) return;
    toldAt.set(network, now());
    onProblem('warn', 'a payment could not be given to its chain; it is tried again', {
      network,
      reason: error.message,
    });
  };

  /** The first submission of a payment. One that was refused before it was sent, and is nowhere, failed. */
  const begin = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<void> => {
    try {
      await submit(deposit.id, chain, payment);
    } catch (error) {
      if (error instanceof ChainUnavailable) return notSubmitted(deposit.network, error);
      if (!(error instanceof PaymentProblem)) throw error;
      if (await look(deposit, chain, payment)) await rows.markFailed(deposit.id, error.message);
    }
  };

  const drive = async (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const until = performance.now() + waitMs;
    const chain = chainOf(deposit.network);
    try {
      if (mine && chain) await begin(deposit, chain, payment);
      for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 1.6, PAUSE_MAX_MS)) {
        const current = await rows.find(deposit.id);
        if (current === null || (current.state !== 'received' && current.state !== 'crediting')) return;
        // Who waits for another gateway's payment looks at the row; whoever gave it to the chain looks there.
        if (mine && chain) {
          try {
            await look(current, chain, payment);
          } catch (error) {
            if (!(error instanceof ChainUnavailable)) throw error;
          }
          const seen = await rows.find(deposit.id);
          if (seen === null || (seen.state !== 'received' && seen.state !== 'crediting')) return;
        }
        if (performance.now() + wait > until) return;
        await pause(wait, undefined, { signal }).catch(() => {});
        // The gateway ends: it is not known yet.
        if (signal.aborted) return;
      }
    } finally {
      if (mine && !signal.aborted) await rows.schedule(deposit.id, now() + FIRST_LOOK_MS).catch(() => {});
    }
  };

  const bringHome = (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const running = driven.get(deposit.id);
    // Who made the row brings it home, also where others of this process wait for it already.
    if (running && !mine) return running;
    const driving = drive(deposit, payment, mine).finally(() => {
      if (driven.get(deposit.id) === driving) driven.delete(deposit.id);
    });
    driven.set(deposit.id, driving);
    return driving;
  };

  const checkOwner = async (deposit: Deposit, payment: SignedPayment, owner: PaymentOwner): Promise<void> => {
    if (deposit.account === null && owner.account === payment.payerAccount) {
      if (await attribute(deposit, owner.account)) return;
      throw new PaymentProblem(
        'payment_verification_failed',
        'This payment is not final yet: it can be taken for its wallet once it is',
      );
    }
    if (deposit.account !== owner.account)
      throw new PaymentProblem(
        'payment_verification_failed',
        'This payment was taken for another account before: sign a new one',
      );
    if (owner.request !== null && deposit.request !== owner.request)
      throw new PaymentProblem(
        'payment_verification_failed',
        'This payment was used for another request: sign a new one, or sign in with the wallet to use its balance',
      );
  };

  /** Out of suspense, into the account that the row says. */
  const give = async ({ id, credited }: Deposit, account: string): Promise<void> => {
    const memo = `deposit ${id} attributed to ${account}`;
    await ledger.transfer({
      id: `deposit-given:${id}`,
      from: SUSPENSE,
      to: ledgerNameOf(account),
      amount: credited!,
      memo,
    });
    await rows.schedule(id, null);
  };

  /** The row of what came in, made where there is none. */
  const keep = async (id: string, event: Incoming, network: string): Promise<Deposit> => {
    const known = await rows.find(id);
    if (known !== null) return known;
    const account = await options.attribute(event, network);
    const made = { id, network, account, payer: event.sender, amount: event.amount, payment: null, request: null };
    await rows.insert(made, now() + CLAIM_MARGIN_MS, null);
    const deposit = await rows.find(id);
    if (deposit === null) throw new Error(`deposit ${id} is gone`);
    return deposit;
  };

  const attribute = async (deposit: Deposit, account: string): Promise<boolean> => {
    if (!(await rows.attribute(deposit.id, account))) return false;
    await give(deposit, account);
    return true;
  };

  return {
    find: (payment) => rows.find(payment.id),

    async take(payment, owner) {
      let deposit = await rows.find(payment.id);
      let mine = false;
      if (deposit === null) {
        const { id, network, payer, amount, memo } = payment;
        // Whoever brings it may say what was asked for, and leave out whom it was for; its payer has signed that.
        if (memo !== undefined && options.namesAnother(memo, owner.account))
          throw new PaymentProblem(
            'payment_verification_failed',
            `The payment is for account ${memo}, not for this one: sign a new one`,
          );
        mine = await rows.insert(
          { id, network, payer, amount, payment, ...owner },
          now() + waitMs + CLAIM_MARGIN_MS,
          OPEN_MAX,
        );
        deposit = await rows.find(id);
        if (deposit === null)
          throw new PaymentProblem(
            'payment_verification_failed',
            `${OPEN_MAX} payments of wallet ${payer} are under way on ${network}: pay again when one of them is settled`,
          );
      }
      await checkOwner(deposit, payment, owner);
      if (deposit.state === 'received' || deposit.state === 'crediting') {
        await bringHome(deposit, payment, mine);
        deposit = (await rows.find(payment.id)) ?? deposit;
      }
      const { state, reason } = deposit;
      if (state === 'failed' || state === 'reversing' || state === 'reversed')
        throw new PaymentProblem('payment_verification_failed', `This payment failed: ${reason}. Sign a new one`);
      return deposit;
    },

    async carryOn(deposit) {
      const { id, network, payment, state } = deposit;
      if (state === 'reversing') return reverse(deposit);
      if (state === 'final' && deposit.account !== null) return give(deposit, deposit.account);
      if (payment === null) return state === 'crediting' ? credit(deposit, true) : undefined;
      const chain = chainOf(network);
      if (chain === null || driven.has(id)) return;
      const open = await look(deposit, chain, payment);
      if (!open) return;
      try {
        await submit(id, chain, payment);
      } catch (error) {
        // It was given to the chain before, perhaps: only the chain can say that it will not come.
        if (error instanceof ChainUnavailable) notSubmitted(network, error);
        if (!(error instanceof PaymentProblem)) throw error;
      }
    },

    async arrived(event, network) {
      const deposit = await keep(idOf(event, network), event, network);
      if (deposit.state !== 'reversing' && deposit.state !== 'reversed') return settle(deposit, event);
      // The chain had said that it could not come any more. It may have been spent, and be the operator's loss:
      // whose it is now, he says, and no wallet can claim it.
      const late: Incoming = { ...event, id: `${event.id}/late`, sender: '', memo: null };
      await settle(await keep(`${deposit.id}/late`, late, network), late);
      onProblem('error', 'a deposit that was reversed came after all: it is in suspense', {
        deposit: deposit.id,
        amount: event.amount,
      });
    },

    async attribute(address, account, network) {
      const given: Deposit[] = [];
      for (const deposit of await rows.suspended(address)) {
        if (network !== null && deposit.network !== network) continue;
        if (await attribute(deposit, account)) given.push({ ...deposit, account });
      }
      return given;
    },

    async attributeOne(id, account) {
      const deposit = await rows.find(id);
      return deposit !== null && (await attribute(deposit, account)) ? { ...deposit, account } : null;
    },
  };
}

const TELL_AGAIN_MS = 60_000;
const RECOVERIES = 5;
/**
 * Of one wallet on one chain. All may be signed against the same money: whoever gives them to the chain pays for
 * those that fail there.
 */
const OPEN_MAX = 32;

const ledgerNameOf = (account: string): AccountName => (account === OPERATOR ? OPERATOR_TREASURY : escrowOf(account));
/** Before the first look of somebody else than who brought a payment. */
const FIRST_LOOK_MS = 2_000;
