import { loadStatements, type Database } from '#store';
import { findTransfer } from './ledger/account-records.ts';
import { earningsOf, type Ledger, OPERATOR_TREASURY } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';

/**
 * Earnings that the operator paid to a provider outside of the gateway, for example by bank transfer. In the ledger a
 * payout is a transfer from the earnings to the operator's treasury, so the audit knows it like every other transfer.
 */
export interface Payout {
  /** The operator's name of the payment. It is unique over all payouts, for ever. */
  readonly reference: string;
  readonly amount: MicroUsd;
  /** The operator's own words about it. */
  readonly note: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** When it was taken back, and why. null for a payout that holds. */
  readonly undone: { readonly at: number; readonly reason: string } | null;
}

type PayoutResult =
  | { readonly ok: true; readonly duplicate: boolean }
  | {
      readonly ok: false;
      /**
       * `insufficient`: the provider has earned less than that. `used`: the reference belongs to another payout.
       * `undone`: the payout with this reference was taken back.
       */
      readonly reason: 'insufficient' | 'used' | 'undone';
    };

type UndoResult = { readonly ok: true; readonly amount: MicroUsd; readonly duplicate: boolean } | null;

/** Books payments of earnings that were made outside of the gateway, and takes wrong bookings back. */
export interface Payouts {
  /** Books a payout once. `provider` is the public key of the provider. */
  pay(payout: {
    readonly provider: string;
    readonly amount: MicroUsd;
    readonly reference: string;
    readonly note: string;
  }): Promise<PayoutResult>;
  /** Gives the amount of a payout back to the earnings, once. null if this provider has no such payout. */
  undo(payout: { readonly provider: string; readonly reference: string; readonly reason: string }): Promise<UndoResult>;
  /** Payouts of a provider, the newest first. */
  list(provider: string, page: { readonly limit: number; readonly offset: number }): Promise<readonly Payout[]>;
}

const SQL = loadStatements(import.meta.url, './sql/account-records.sql', ['listPayouts']);

const PAID = 'payout:';
const UNDONE = 'payout-undone:';

export function createPayouts(database: Database, ledger: Pick<Ledger, 'transfer'>): Payouts {
  return {
    async pay({ provider, amount, reference, note }) {
      const transfer = { id: PAID + reference, from: earningsOf(provider), to: OPERATOR_TREASURY, amount };
      const result = await ledger.transfer({ ...transfer, memo: note });
      if (result.ok) return { ok: true, duplicate: false };
      if (result.reason === 'insufficient') return { ok: false, reason: 'insufficient' };
      const before = await findTransfer(database, transfer.id);
      if (before?.from !== transfer.from || before.amount !== amount) return { ok: false, reason: 'used' };
      if (await findTransfer(database, UNDONE + reference)) return { ok: false, reason: 'undone' };
      return { ok: true, duplicate: true };
    },
    async undo({ provider, reference, reason }) {
      const paid = await findTransfer(database, PAID + reference);
      if (paid?.from !== earningsOf(provider)) return null;
      const back = { id: UNDONE + reference, from: paid.to, to: paid.from, amount: paid.amount, memo: reason };
      const result = await ledger.transfer(back);
      if (!result.ok && result.reason !== 'duplicate')
        throw new Error(`the payout ${reference} could not be taken back: ${result.reason}`);
      return { ok: true, amount: paid.amount, duplicate: !result.ok };
    },
    async list(provider, { limit, offset }) {
      const rows = await database.query(SQL.listPayouts, [earningsOf(provider), OPERATOR_TREASURY, limit, offset]);
      return rows.map((row) => ({
        reference: (row['id'] as string).slice(PAID.length),
        amount: row['amount'] as bigint,
        note: row['memo'] as string,
        at: Number(row['at']),
        undone:
          row['undone_at'] === null ? null : { at: Number(row['undone_at']), reason: row['undone_memo'] as string },
      }));
    },
  };
}
