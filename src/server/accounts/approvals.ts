import { randomBytes } from 'node:crypto';
import type { MicroUsd } from '#billing/amounts';
import { createSealedTexts, type SealSecret } from '#security';
import { loadStatements, type Database, type Row } from '#store';

/** A call that a person accepts before it runs. Times are epoch milliseconds. */
export interface Approval {
  readonly id: string;
  readonly account: string;
  /** The hash of the API key that asks. */
  readonly key: string;
  /** SHA-256 of the request, in hex. A repeat of the request has the same. */
  readonly digest: string;
  readonly primitive: string;
  readonly service: string;
  /** The name of a tool; null for the whole service. */
  readonly operation: string | null;
  /** The quote that fixes the price. */
  readonly quote: string;
  readonly amount: MicroUsd;
  readonly preview: string;
  readonly state: 'waiting' | 'accepted' | 'refused';
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly decidedAt: number | null;
  readonly decidedBy: string | null;
}

/** An approval with the call that has used it; null before. */
export interface ApprovalUse extends Approval {
  readonly call: string | null;
}

type NewApproval = Pick<
  Approval,
  'account' | 'key' | 'digest' | 'primitive' | 'service' | 'operation' | 'quote' | 'amount' | 'preview' | 'expiresAt'
>;

/** Approvals in the database. All methods reject with the database's error. */
export interface ApprovalStore {
  find(key: string, digest: string): Promise<Approval | null>;
  /**
   * Begins to wait for a decision, and notes an event for the webhook of the account. `instead`: the id of the approval
   * of the same request that is of no use any more. null if another one of the same request exists now, or if the
   * key has its share of WAITING_MAX that wait, see limitText.
   */
  ask(approval: NewApproval, instead: string | null, event: (id: string) => object): Promise<Approval | null>;
  /** Of an account. null for an unknown id. */
  get(account: string, id: string): Promise<ApprovalUse | null>;
  /** The newest first; `key`: only those of this API key. */
  list(account: string, key: string | null, limit: number): Promise<readonly ApprovalUse[]>;
  /** False if it does not wait any more. `by`: the account that decides. */
  decide(account: string, id: string, state: 'accepted' | 'refused', decider: string): Promise<boolean>;
  /** Deletes approvals that expired at least a day ago, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}

/** Calls of a key that wait for a decision at the same time. */
export const WAITING_MAX = 100;

const SQL = loadStatements(import.meta.url, './sql/approvals.sql', [
  'decideApproval',
  'findApproval',
  'findApprovalById',
  'insertApproval',
  'listApprovals',
  'noteApproval',
  'sweepApprovals',
]);

const DAY_MS = 86_400_000;

/** `secret`: 32 bytes that all gateways of one database share. */
export function createApprovalStore(
  database: Pick<Database, 'query'>,
  { secret, now }: { readonly secret: SealSecret; readonly now: () => number },
): ApprovalStore {
  const texts = createSealedTexts(secret);
  const sealOf = (id: string) => `approval ${id}`;
  const approvalOf = (row: Row): Approval => ({
    id: row['id'] as string,
    account: row['account'] as string,
    key: row['key'] as string,
    digest: row['digest'] as string,
    primitive: row['primitive'] as string,
    service: row['service'] as string,
    operation: row['operation'] as string | null,
    quote: row['quote'] as string,
    amount: row['amount'] as bigint,
    preview: texts.open(sealOf(row['id'] as string), row['preview'] as string) ?? '',
    state: row['state'] as Approval['state'],
    createdAt: Number(row['created_at']),
    expiresAt: Number(row['expires_at']),
    decidedAt: row['decided_at'] === null ? null : Number(row['decided_at']),
    decidedBy: row['decided_by'] as string | null,
  });
  const useOf = (row: Row): ApprovalUse => ({ ...approvalOf(row), call: row['call_id'] as string | null });

  return {
    async find(key, digest) {
      const [row] = await database.query(SQL.findApproval, [key, digest]);
      return row ? approvalOf(row) : null;
    },
    async ask({ preview, ...question }, instead, event) {
      const id = `apr_${randomBytes(16).toString('hex')}`;
      const { account, key, digest, primitive, service, operation, quote, amount, expiresAt } = question;
      const at = now();
      const sealed = texts.seal(sealOf(id), preview);
      const rows = await database.query(SQL.insertApproval, [
        id,
        account,
        key,
        digest,
        primitive,
        service,
        operation,
        quote,
        amount,
        sealed,
        at,
        expiresAt,
        instead,
        WAITING_MAX,
      ]);
      if (rows.length === 0) return null;
      await database.query(SQL.noteApproval, [id, account, at, JSON.stringify(event(id))]);
      return { ...question, id, preview, state: 'waiting', createdAt: at, decidedAt: null, decidedBy: null };
    },
    async get(account, id) {
      const [row] = await database.query(SQL.findApprovalById, [id, account]);
      return row ? useOf(row) : null;
    },
    list: async (account, key, limit) => (await database.query(SQL.listApprovals, [account, key, limit])).map(useOf),
    decide: async (account, id, state, decider) =>
      (await database.query(SQL.decideApproval, [id, account, state, now(), decider])).length > 0,
    sweep: async (limit) => (await database.query(SQL.sweepApprovals, [now() - DAY_MS, limit])).length,
  };
}
