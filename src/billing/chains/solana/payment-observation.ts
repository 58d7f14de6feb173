import type { Address } from '@solana/kit';
import { dropOldest } from '#wire';
import { ChainUnavailable, type PaymentSighting } from '../chain.ts';
import { isSignature } from './address.ts';
import { checkNotBefore, type Expiry } from './expiry.ts';
import type { SolanaNode } from './node.ts';
import type { Level, SignatureStatus } from './node-answers.ts';
import { movementsInto, type SolanaTransaction } from './transaction.ts';

const EXPIRED = 'its blockhash expired before the transaction was in a block';
const SEARCH_PAGE = 100;
/** Enough for a wallet in the ten minutes in which a payment can get into a block. */
const SEARCH_PAGES = 2;
const REMEMBERED_MAX = 20_000;
/** Payments that are credited and not final yet. They are final after seconds. */
const CONFIRMED_MAX = 2_000;

export interface Sought {
  readonly messageHash: string;
  readonly blockhash: string;
  readonly source: Address;
  /** When the payment was first read, which was before it was submitted, in epoch milliseconds. */
  readonly readAt: number | null;
  /** Id of the transaction, if only the gateway can co-sign it; else null. */
  readonly signature: string | null;
}

interface PaymentObservation {
  find(sought: Sought, hint: string | null): Promise<PaymentSighting>;
}

/** Finds payments on the chain: by the transaction id, or in the transactions of the payer's token account. */
export function createPaymentObservation(
  node: SolanaNode,
  expiry: Expiry,
  treasuryAccount: Address,
  asset: Address,
): PaymentObservation {
  /** Message hashes of transactions by signature, so that a repeated search reads no transaction twice. */
  const messages = new Map<string, string>();

  const transactionOf = createTransactionReader(node);

  /** The state of a payment by its transaction; null if the transaction is unknown or another one. */
  async function sightingOf(
    signature: string,
    messageHash: string,
    status: SignatureStatus,
  ): Promise<PaymentSighting | null> {
    const { inclusion, slot } = status;
    if (inclusion === null) return null;
    if (inclusion.level === 'processed') return { state: 'open' };
    const transaction = await transactionOf(signature, inclusion.level, inclusion.slot);
    if (transaction === null) throw new ChainUnavailable('the Solana node lists a transaction that it does not return');
    if (transaction.messageHash !== messageHash) return null;
    const final = inclusion.level === 'finalized';
    if (transaction.failed !== (inclusion.failed !== null) || transaction.slot !== inclusion.slot)
      throw new ChainUnavailable('the Solana node contradicts itself about a transaction');
    // A failure that is not final may still change, because the network may choose another fork.
    if (inclusion.failed !== null)
      return final
        ? { state: 'lost', reason: `its transaction failed on the chain: ${inclusion.failed}` }
        : { state: 'open' };
    const movements = movementsInto(transaction, treasuryAccount, asset);
    const [movement] = movements;
    if (movement === undefined || movements.length > 1)
      throw new ChainUnavailable('the Solana node shows a payment that paid nothing');
    const confirmations = slot > inclusion.slot ? Number(slot - inclusion.slot) + 1 : 1;
    const event = {
      id: `${signature}:0`,
      transaction: signature,
      amount: movement.amount,
      height: inclusion.slot,
      confirmations,
      final,
    };
    return { state: 'settled', event };
  }

  /**
   * Searches the transactions of the payer's account. `complete`: the search covers the whole time in which the payment
   * can have arrived, so a payment that it does not find has not arrived.
   */
  async function search(
    { source, messageHash, blockhash }: Sought,
    level: Level,
    minSlot: bigint,
  ): Promise<{ signature: string | null; complete: boolean }> {
    const since = expiry.since(blockhash) ?? 0n;
    let before: string | undefined;
    for (let page = 0; page < SEARCH_PAGES; page += 1) {
      const entries = await node.signatures(source, level, {
        limit: SEARCH_PAGE,
        minSlot,
        ...(before === undefined ? {} : { before }),
      });
      for (const { signature, slot } of entries) {
        if (slot < since) return { signature: null, complete: true };
        let message = messages.get(signature);
        if (message === undefined) {
          const transaction = await node.transaction(signature, level);
          if (transaction === null)
            throw new ChainUnavailable('the Solana node lists a transaction that it does not return');
          message = transaction.messageHash;
          dropOldest(messages, REMEMBERED_MAX - 1);
          messages.set(signature, message);
        }
        if (message === messageHash) return { signature, complete: true };
        before = signature;
      }
      if (entries.length < SEARCH_PAGE) return { signature: null, complete: true };
    }
    return { signature: null, complete: false };
  }

  /** The state by an id that only this payment can have. */
  async function own(signature: string, messageHash: string, status: SignatureStatus): Promise<PaymentSighting | null> {
    const sighting = await sightingOf(signature, messageHash, status);
    if (sighting === null && status.inclusion !== null)
      throw new ChainUnavailable('the Solana node shows another transaction under the id of a payment');
    return sighting;
  }

  async function bySignature(signature: string, sought: Sought): Promise<PaymentSighting> {
    const { messageHash } = sought;
    const sighting = await own(signature, messageHash, await node.status(signature));
    if (sighting) return sighting;
    const gone = await expiry.ofPayment(sought);
    if (gone === null) return { state: 'open' };
    // This status is requested after the payment can no longer arrive, so a missing payment is lost.
    const last = await node.status(signature);
    checkNotBefore(last.slot, gone);
    return (await own(signature, messageHash, last)) ?? { state: 'lost', reason: EXPIRED };
  }

  async function byMessage(sought: Sought, hint: string | null): Promise<PaymentSighting> {
    const { messageHash } = sought;
    if (isSignature(hint)) {
      const sighting = await sightingOf(hint, messageHash, await node.status(hint));
      if (sighting) return sighting;
    }
    const gone = await expiry.ofPayment(sought);
    const { signature, complete } = await search(sought, gone === null ? 'confirmed' : 'finalized', gone?.slot ?? 0n);
    if (signature !== null)
      return (await sightingOf(signature, messageHash, await node.status(signature))) ?? { state: 'open' };
    return gone !== null && complete ? { state: 'lost', reason: EXPIRED } : { state: 'open' };
  }

  return {
    find: (sought, hint) =>
      sought.signature === null ? byMessage(sought, hint) : bySignature(sought.signature, sought),
  };
}

/** Reads a transaction at a slot; null if the node does not show it. */
function createTransactionReader(node: Pick<SolanaNode, 'transaction'>) {
  /** Transactions by signature. A slot is confirmed only once, so its transactions do not change. */
  const confirmed = new Map<string, SolanaTransaction>();
  return async (signature: string, level: Level, slot: bigint): Promise<SolanaTransaction | null> => {
    const known = confirmed.get(signature);
    if (level === 'confirmed' && known?.slot === slot) return known;
    confirmed.delete(signature);
    // Final transactions are always read again, because they decide.
    const transaction = await node.transaction(signature, level);
    if (level === 'confirmed' && transaction !== null) {
      dropOldest(confirmed, CONFIRMED_MAX - 1);
      confirmed.set(signature, transaction);
    }
    return transaction;
  };
}
