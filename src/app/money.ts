import { createPriceBook, createReceiptSigner } from '#billing';
import { createLockPayments } from '#gateway';
import { pricesOf } from '#network';
import { createPastReceipts } from '#pages';
import type { Opened } from './foundation.ts';
import { auditWithJournal } from './journal/journal.ts';
import { openLedger } from './ledger.ts';
import { openObservers } from './observers.ts';
import { openPayments } from './payments.ts';
import type { Store } from './store.ts';

export type Money = Opened<typeof openMoney>;

/** Phase 2: ledger, prices, receipts and payments over chains, and the observers that count them. */
export async function openMoney(store: Store) {
  const { config, options, database, identity, offers, opened, late, networks, now } = store;
  const observers = await openObservers(store);
  const ledger = await openLedger(store, (batch) => observers.metrics.ledgerBatch(batch));
  const receipts = createReceiptSigner(identity.receiptKey.privateKey);
  const prices = createPriceBook(database);
  await prices.remember(pricesOf(offers));
  const chains = await openPayments({ ...store, ledger });
  opened.defer(chains.close);
  late.funds = chains;
  const payments = options.payments ?? chains.payments;
  return {
    ...store,
    ...observers,
    ledger,
    receipts,
    pastReceipts: createPastReceipts(receipts, ledger, networks),
    prices,
    funds: chains.funds,
    prepareChains: chains.prepare,
    payments,
    lockPayments: createLockPayments(payments, ledger),
    audit: () => auditWithJournal(config, database, { now }),
  };
}
