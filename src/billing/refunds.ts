import { listParam, loadStatements, type Database } from '#store';
import { findTransfer } from './ledger/account-records.ts';
import { earningsOf, escrowOf, type Ledger, type LockRecord, OPERATOR_TREASURY } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';

/**
 * Money of a settled call that the operator gave back to its consumer. In the ledger a refund is a transfer from the
 * operator's treasury to the escrow, and then one of the provider's share from its earnings to the treasury, if the
 * earnings suffice. The operator bears the fee. What budgets counted as spent does not change.
 */
export interface Refund {
  /** Id of the call. It has at most one refund. */
  readonly call: string;
  readonly amount: MicroUsd;
  /** The part of the amount that the provider bore; 0 if its earnings did not suffice. */
  readonly fromProvider: MicroUsd;
  /** Public key of the provider that bore it; null if none did. */
  readonly provider: string | null;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** `duplicate`: the consumer had it before. It is refused if the call already has a refund of another amount. */
type RefundResult =
  | { readonly ok: true; readonly refund: Refund; readonly duplicate: boolean }
  | { readonly ok: false; readonly refund: Refund };

/** A refund as its provider sees it. `amount` is what the provider bore. */
export type RefundOfProvider = Omit<Refund, 'fromProvider' | 'provider'>;

export interface Refunds {
  /**
   * Refunds a settled call once. `amount` is at least 1 and at most what was charged. A repetition takes the provider's
   * share if that was not possible before.
   */
  refund(
    call: Pick<LockRecord, 'id' | 'account' | 'provider' | 'charged' | 'fee'>,
    amount: MicroUsd,
    reason: string,
  ): Promise<RefundResult>;
  find(call: string): Promise<Refund | null>;
  /** The refunded amounts of calls, by the id of the call; only those that have a refund. */
  amounts(calls: readonly string[]): Promise<ReadonlyMap<string, MicroUsd>>;
  /** Refunds of which a provider (public key) bore a share, the newest first. */
  list(
    provider: string,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<readonly RefundOfProvider[]>;
}

const SQL = loadStatements(import.meta.url, './sql/account-records.sql', ['listRefunds']);
const ARCHIVE_SQL = loadStatements(import.meta.url, './sql/archive.sql', ['findManyTransfers']);

/* The ids of the two transfers. */
const refundId = (call: string) => `refund:${call}`;
const shareId = (call: string) => `refund-share:${call}`;

export function createRefunds(database: Database, ledger: Pick<Ledger, 'transfer'>): Refunds {
  async function find(call: string): Promise<Refund | null> {
    const [refund, share] = await Promise.all([
      findTransfer(database, refundId(call)),
      findTransfer(database, shareId(call)),
    ]);
    if (refund === null) return null;
    return {
      call,
      amount: refund.amount,
      fromProvider: share?.amount ?? 0n,
      provider: share?.from.slice(earningsOf('').length) ?? null,
      reason: refund.memo,
      at: refund.at,
    };
  }
  return {
    find,
    async refund({ id, account, provider, charged, fee }, amount, memo) {
      const transfer = { from: OPERATOR_TREASURY, to: escrowOf(account), amount, memo };
      const { ok: isNew } = await ledger.transfer({ ...transfer, id: refundId(id) });
      const refund = (await find(id))!;
      if (refund.amount !== amount) return { ok: false, refund };
      // Rounded down, so the operator bears what is left of a micro-dollar.
      const share = (amount * (charged - fee)) / charged;
      if (share === 0n || provider === null || refund.fromProvider > 0n) return { ok: true, refund, duplicate: !isNew };
      const back = { from: earningsOf(provider), to: OPERATOR_TREASURY, amount: share, memo: refund.reason };
      await ledger.transfer({ ...back, id: shareId(id) });
      return { ok: true, refund: (await find(id))!, duplicate: !isNew };
    },
    async amounts(calls) {
      if (calls.length === 0) return new Map();
      const rows = await database.query(ARCHIVE_SQL.findManyTransfers, [listParam(calls.map(refundId))]);
      return new Map(rows.map((row) => [(row['id'] as string).slice(refundId('').length), row['amount'] as bigint]));
    },
    async list(provider, { limit, offset }) {
      const rows = await database.query(SQL.listRefunds, [earningsOf(provider), limit, offset]);
      return rows.map((row) => ({
        call: (row['id'] as string).slice(shareId('').length),
        amount: row['amount'] as bigint,
        reason: row['memo'] as string,
        at: Number(row['at']),
      }));
    },
  };
}
