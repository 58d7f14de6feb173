import { PaymentProblem, type Incoming, type SignedPayment } from './chain.ts';
import { CLAIM_MARGIN_MS, createCrediting, type CreditingOptions } from './deposit-crediting.ts';
import { createDelivery, type DeliveryOptions } from './deposit-delivery.ts';
import type { Deposit } from './deposit-rows.ts';

export interface DepositsOptions extends CreditingOptions, Omit<DeliveryOptions, 'crediting'> {
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
  /** Books a final incoming transfer. */
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

const refused = (message: string) => new PaymentProblem('payment_verification_failed', message);

export function createDeposits(options: DepositsOptions): Deposits {
  const { rows, waitMs, now, onProblem } = options;
  const crediting = createCrediting(options);
  const { attribute, credit, give, reverse, settle } = crediting;
  const delivery = createDelivery({ ...options, crediting });

  const idOf = (event: Incoming, network: string) => event.paymentId ?? `${network}/${event.id}`;

  const checkOwner = async (deposit: Deposit, payment: SignedPayment, owner: PaymentOwner): Promise<void> => {
    if (deposit.account === null && owner.account === payment.payerAccount) {
      if (await attribute(deposit, owner.account)) return;
      throw refused('This payment is not final yet: it can be taken for its wallet once it is');
    }
    if (deposit.account !== owner.account)
      throw refused('This payment was taken for another account before: sign a new one');
    if (owner.request !== null && deposit.request !== owner.request)
      throw refused(
        'This payment was used for another request: sign a new one, or sign in with the wallet to use its balance',
      );
  };

  /** The row of an incoming transfer. It is created if it is missing. */
  const keep = async (id: string, event: Incoming, network: string): Promise<Deposit> => {
    const known = await rows.find(id);
    if (known !== null) return known;
    const account = await options.attribute(event, network, id);
    const made = { id, network, account, payer: event.sender, amount: event.amount, payment: null, request: null };
    await rows.insert(made, now() + CLAIM_MARGIN_MS, null);
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
          throw refused(`The payment is for account ${memo}, not for this one: sign a new one`);
        mine = await rows.insert(
          { id, network, payer, amount, payment, ...owner },
          now() + waitMs + CLAIM_MARGIN_MS,
          OPEN_MAX,
        );
        deposit = await rows.find(id);
        if (deposit === null)
          throw refused(
            `${OPEN_MAX} payments of wallet ${payer} are under way on ${network}: pay again when one of them is settled`,
          );
      }
      await checkOwner(deposit, payment, owner);
      if (deposit.state === 'received' || deposit.state === 'crediting') {
        await delivery.bringHome(deposit, payment, mine);
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
      await delivery.carryOn(deposit, payment);
    },

    async arrived(event, network) {
      const deposit = await keep(idOf(event, network), event, network);
      if (deposit.state !== 'reversing' && deposit.state !== 'reversed') return settle(deposit, event);
      // The chain had reported that the deposit could never arrive, and the credited money may already have been spent
      // at the operator's loss. So only the operator decides whose money it is: without sender and memo no wallet can
      // claim it.
      const late: Incoming = { ...event, id: `${event.id}/late`, sender: '', memo: null };
      await settle(await keep(`${deposit.id}/late`, late, network), late);
      onProblem('error', 'a deposit that was reversed came after all: it is in suspense', {
        deposit: deposit.id,
        amount: event.amount,
      });
    },

    async attribute(address, account, network) {
      const given: Deposit[] = [];
      // A deposit that is attributed, here or elsewhere, is no longer in suspense. So each page has other deposits.
      for (;;) {
        const page = await rows.suspended(address, network);
        if (page.length === 0) return given;
        for (const deposit of page) if (await attribute(deposit, account)) given.push({ ...deposit, account });
      }
    },

    async attributeOne(id, account) {
      const deposit = await rows.find(id);
      return deposit !== null && (await attribute(deposit, account)) ? { ...deposit, account } : null;
    },
  };
}
