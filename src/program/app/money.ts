import {
  createGiveBack,
  createPriceBook,
  createReceiptSigner,
  createRefunds,
  type AuditReport,
} from '#billing/compose';
import type { Ledger, PriceBook, ReceiptSigner } from '#billing';
import { formatUsd, type GiveBack } from '#billing/amounts';
import { createLockPayments, type LockPayments } from '#call/compose';
import { pricesOf } from '#network';
import { createPastReceipts, type PastReceipts } from '#pages';
import type { Payments } from '#payments';
import type { Foundation } from './foundation.ts';
import { auditWithJournal, openLedger } from './journal.ts';
import type { Observers } from './observers.ts';
import { type OpenPayments, openPayments } from './payments.ts';

/** Phase 3: ledger, prices, receipts and payments over chains. */
export interface Money {
  readonly ledger: Ledger;
  readonly giveBack: GiveBack;
  readonly prices: PriceBook;
  readonly receipts: ReceiptSigner;
  readonly pastReceipts: PastReceipts;
  readonly chains: OpenPayments;
  /** Those of the chains, or those that the options give. */
  readonly payments: Payments;
  readonly lockPayments: LockPayments;
  /** `archives`: folders with archives of the ledger, beside that of the data directory. */
  audit(archives?: readonly string[]): Promise<AuditReport>;
}

export async function openMoney(foundation: Foundation, { metrics }: Observers): Promise<Money> {
  const { config, options, database, journal, identity, offers, resources, networks, logger, now } = foundation;
  const ledger = await openLedger(
    { database, journal, resources, now, flushMs: config.ledger.flush },
    metrics.ledgerBatch,
  );
  const receipts = createReceiptSigner(identity.receiptKey.privateKey);
  const prices = createPriceBook(database, now);
  await prices.remember(pricesOf(offers));
  const chains = await openPayments({ config, database, ledger, logger, networks, now });
  resources.defer(chains.close);
  if (chains.funds !== null) metrics.showFunds(chains.figures);
  const payments = options.payments ?? chains.payments;
  return {
    ledger,
    giveBack: createGiveBack({
      ledger,
      refunds: createRefunds(database, ledger),
      onGivenBack: ({ id, account }, amount) =>
        logger.warn(
          { generation: id, account, amount: formatUsd(amount) },
          'a gateway ended between the charge of a call and the row of its answer; the operator has given the charge back',
        ),
    }),
    prices,
    receipts,
    pastReceipts: createPastReceipts(receipts, ledger, networks),
    chains,
    payments,
    lockPayments: createLockPayments(payments, ledger),
    audit: (archives = []) => auditWithJournal(config, database, { now, archives }),
  };
}
