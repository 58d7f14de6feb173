import { setTimeout as pause } from 'node:timers/promises';
import { PaymentProblem, type Incoming, type SignedPayment, ChainUnavailable, type Chain } from './chain.ts';
import { CLAIM_MARGIN_MS, createCrediting, type CreditingOptions } from './deposit-crediting.ts';
import type { Deposit } from './deposit-rows.ts';

export interface DepositsOptions extends CreditingOptions {
  /** null if the chain is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  /** How long a request with a payment waits for the credit. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Whether a memo names another account than this one. The named account need not exist. */
  readonly namesAnother: (memo: string, account: string) => boolean;
  /** Resolves with the account that a plain transfer is for, or null. `deposit`: the id of its row. */
  readonly attribute: (event: Incoming, network: string, deposit: string) => Promise<string | null>;
}

/**
 * The account that gets the credit of a payment, and the request of the payment if nothing else authenticates the
 * caller.
 */
interface PaymentOwner {
  readonly account: string;
  readonly request: string | null;
}

export interface Deposits {
  /** The deposit of a payment; null if the payment is not known yet. */
  find(payment: SignedPayment): Promise<Deposit | null>;
  /**
   * Stores a verified payment, submits it to the chain and credits what arrives. Resolves with the deposit in its
   * present state. The state may be `received`: the outcome is not known yet, and a worker goes on looking. Rejects
   * with PaymentProblem if the payment failed, or belongs to another account or another request.
   */
  take(payment: SignedPayment, owner: PaymentOwner): Promise<Deposit>;
  /** Makes all steps with a deposit that are possible now. Rejects with ChainUnavailable. */
  carryOn(deposit: Deposit): Promise<void>;
  arrived(event: Incoming, network: string): Promise<void>;
  /**
   * Credits the deposits in suspense from an address, on one network or on all (null), to the account that has proven
   * its ownership. Resolves with these deposits.
   */
  attribute(address: string, account: string, network: string | null): Promise<readonly Deposit[]>;
  /** Credits one deposit in suspense. null if no deposit with this id is in suspense. */
  attributeOne(id: string, account: string): Promise<Deposit | null>;
}

/**
 * The maximum of open payments of one wallet on one chain. All of them may be signed against the same money, and the
 * gateway pays the chain's fees for those that fail.
 */
const OPEN_MAX = 32;

const FIRST_PAUSE_MS = 40;
const PAUSE_MAX_MS = 1_000;
const TELL_AGAIN_MS = 60_000;
/** Time before the worker's first look at a payment. */
const FIRST_POLL_MS = 2_000;

const isUnderWay = (deposit: Deposit | null): deposit is Deposit =>
  deposit !== null && (deposit.state === 'received' || deposit.state === 'crediting');

const refused = (message: string) => new PaymentProblem('payment_verification_failed', message);

export function createDeposits(options: DepositsOptions): Deposits {
  const { rows, chainOf, waitMs, now, onProblem, signal } = options;
  const { attribute, credit, give, lost, reverse, settle } = createCrediting(options);
  const toldAt = new Map<string, number>();
  /** Payments that requests of this process wait for, by deposit id. */
  const driven = new Map<string, Promise<void>>();

  /** Looks for the payment on the chain and books the result. Resolves with whether the payment may still arrive. */
  const poll = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<boolean> => {
    const observation = await chain.find(payment, deposit.transaction);
    if (observation.state === 'settled') await settle(deposit, observation.event);
    else if (observation.state === 'lost') await lost(deposit, observation.reason);
    return observation.state === 'open';
  };

  const submit = async (id: string, chain: Chain, payment: SignedPayment): Promise<void> => {
    const { transaction } = await chain.submit(payment);
    if (transaction !== null) await rows.noteTransaction(id, transaction);
  };

  /**
   * Tells the operator why payments cannot be submitted to a chain, because only the operator can refill a treasury
   * without gas. At most one message in TELL_AGAIN_MS for each network.
   */
  const notSubmitted = (network: string, error: ChainUnavailable): void => {
    if (now() - (toldAt.get(network) ?? 0) < TELL_AGAIN_MS) return;
    toldAt.set(network, now());
    onProblem('warn', 'a payment could not be sent to its chain; the gateway tries again', {
      network,
      reason: error.message,
    });
  };

  /**
   * Submits a payment for the first time. Marks it as failed if it was refused before it was sent and is not on the
   * chain.
   */
  const begin = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<void> => {
    try {
      await submit(deposit.id, chain, payment);
    } catch (error) {
      if (error instanceof ChainUnavailable) return notSubmitted(deposit.network, error);
      if (!(error instanceof PaymentProblem)) throw error;
      if (await poll(deposit, chain, payment)) await rows.markFailed(deposit.id, error.message);
    }
  };

  const drive = async (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const until = performance.now() + waitMs;
    const chain = chainOf(deposit.network);
    try {
      if (mine && chain) await begin(deposit, chain, payment);
      for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 1.6, PAUSE_MAX_MS)) {
        const current = await rows.find(deposit.id);
        if (!isUnderWay(current)) return;
        // Only the caller that submitted the payment looks at the chain. The others look at the row.
        if (mine && chain) {
          try {
            await poll(current, chain, payment);
          } catch (error) {
            if (!(error instanceof ChainUnavailable)) throw error;
          }
          if (!isUnderWay(await rows.find(deposit.id))) return;
        }
        if (performance.now() + wait > until) return;
        await pause(wait, undefined, { signal }).catch(() => {});
        // The gateway stops, so the outcome is not known yet.
        if (signal.aborted) return;
      }
    } finally {
      if (mine && !signal.aborted) await rows.schedule(deposit.id, now() + FIRST_POLL_MS).catch(() => {});
    }
  };

  /**
   * Waits until a payment is credited or `waitMs` is over. `mine`: this caller created the row, so it submits the
   * payment and looks for it on the chain. Other callers look only at the row.
   */
  const bringHome = (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const running = driven.get(deposit.id);
    // The caller that created the row does the work, even if others of this process already wait.
    if (running && !mine) return running;
    const driving = drive(deposit, payment, mine).finally(() => {
      if (driven.get(deposit.id) === driving) driven.delete(deposit.id);
    });
    driven.set(deposit.id, driving);
    return driving;
  };

  /** Looks once for a payment that no request of this process waits for. Submits it again if it may still arrive. */
  const carryOnPayment = async (deposit: Deposit, payment: SignedPayment): Promise<void> => {
    const { id, network } = deposit;
    const chain = chainOf(network);
    if (chain === null || driven.has(id)) return;
    const open = await poll(deposit, chain, payment);
    if (!open) return;
    try {
      await submit(id, chain, payment);
    } catch (error) {
      // The payment may have been submitted before, so a refusal here is no failure. Only the chain can decide that
      // it will not arrive.
      if (error instanceof ChainUnavailable) notSubmitted(network, error);
      if (!(error instanceof PaymentProblem)) throw error;
    }
  };

  const idOf = (event: Incoming, network: string) => event.paymentId ?? `${network}/${event.id}`;

  const checkOwner = async (deposit: Deposit, payment: SignedPayment, owner: PaymentOwner): Promise<void> => {
    if (deposit.account === null && owner.account === payment.payerAccount) {
      if (await attribute(deposit, owner.account)) return;
      throw refused('This payment is not final yet. When it is final, it can be credited to its wallet');
    }
    if (deposit.account !== owner.account)
      throw refused('This payment was already credited to another account. Sign a new one');
    if (owner.request !== null && deposit.request !== owner.request)
      throw refused(
        'This payment was already used for another request. Sign a new one, or sign in with the wallet to use its balance',
      );
  };

  /** The row of an incoming transfer. It is created if it is missing. */
  const keep = async (id: string, event: Incoming, network: string): Promise<Deposit> => {
    const known = await rows.find(id);
    if (known !== null) return known;
    const account = await options.attribute(event, network, id);
    const newDeposit = {
      id,
      network,
      account,
      payer: event.sender,
      amount: event.amount,
      payment: null,
      request: null,
    };
    await rows.insert(newDeposit, now() + CLAIM_MARGIN_MS, null);
    const deposit = await rows.find(id);
    if (deposit === null) throw new Error(`deposit ${id} is gone`);
    return deposit;
  };

  return {
    find: (payment) => rows.find(payment.id),

    async take(payment, owner) {
      let deposit = await rows.find(payment.id);
      let mine = false;
      if (deposit === null) {
        const { id, network, payer, amount, memo } = payment;
        // The sender of the request can change the requirements and leave out the account, but the memo is signed by
        // the payer.
        if (memo !== undefined && options.namesAnother(memo, owner.account))
          throw refused(`The payment is for account ${memo}, not for this account. Sign a new one`);
        mine = await rows.insert(
          { id, network, payer, amount, payment, ...owner },
          now() + waitMs + CLAIM_MARGIN_MS,
          OPEN_MAX,
        );
        deposit = await rows.find(id);
        if (deposit === null)
          throw refused(
            `${OPEN_MAX} payments of wallet ${payer} are pending on ${network}, which is the maximum. Pay again when one of them is settled`,
          );
      }
      await checkOwner(deposit, payment, owner);
      if (deposit.state === 'received' || deposit.state === 'crediting') {
        await bringHome(deposit, payment, mine);
        deposit = (await rows.find(payment.id)) ?? deposit;
      }
      const { state, reason } = deposit;
      if (state === 'failed' || state === 'reversing' || state === 'reversed')
        throw refused(`This payment failed: ${reason}. Sign a new one`);
      return deposit;
    },

    async carryOn(deposit) {
      const { payment, state } = deposit;
      if (state === 'reversing') return reverse(deposit);
      if (state === 'final' && deposit.account !== null) return give(deposit, deposit.account);
      if (payment === null) return state === 'crediting' ? credit(deposit, true) : undefined;
      await carryOnPayment(deposit, payment);
    },

    async arrived(event, network) {
      const deposit = await keep(idOf(event, network), event, network);
      if (deposit.state !== 'reversing' && deposit.state !== 'reversed') return settle(deposit, event);
      // The chain had reported that the deposit could never arrive, and the credited money may already have been spent
      // at the operator's loss. So only the operator decides whose money it is: without sender and memo no wallet can
      // claim it.
      const late: Incoming = { ...event, id: `${event.id}/late`, sender: '', memo: null };
      await settle(await keep(`${deposit.id}/late`, late, network), late);
      onProblem('error', 'a deposit that was reversed arrived after all and is in suspense', {
        deposit: deposit.id,
        amount: event.amount,
      });
    },

    async attribute(address, account, network) {
      const deposits: Deposit[] = [];
      // A deposit that is attributed, here or elsewhere, is no longer in suspense. So each page has other deposits.
      for (;;) {
        const page = await rows.suspended(address, network);
        if (page.length === 0) return deposits;
        for (const deposit of page) if (await attribute(deposit, account)) deposits.push({ ...deposit, account });
      }
    },

    async attributeOne(id, account) {
      const deposit = await rows.find(id);
      return deposit !== null && (await attribute(deposit, account)) ? { ...deposit, account } : null;
    },
  };
}
