import { loadStatement, type Database, type Step } from '#store';

const PUT_NODE = loadStatement(import.meta.url, './sql/put-node.sql');

/** Renewals in the time of a lease. */
const RENEWALS = 3;

export interface LeaseOptions {
  readonly database: Pick<Database, 'query'>;
  readonly node: { readonly id: string; readonly url: string | null };
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly leaseMs: number;
}

/** This gateway's own row among the gateways of the database, and when it was written last. */
export interface Lease {
  /** Raises the beat; for a transaction that ends with `renewed`. */
  step(): Step;
  /** A transaction with `step` was committed. */
  renewed(): void;
  /** Raises the beat. Rejects with the database's error. */
  renew(): Promise<void>;
  /** The database may not have the last beat: the next one is due at once. */
  doubt(): void;
  /** `at`: monotonic milliseconds. */
  isDue(at: number): boolean;
}

export function createLease({ database, node, now, leaseMs }: LeaseOptions): Lease {
  const startedAt = now();
  let renewedAt = -Infinity;
  const params = () => [node.id, node.url, now(), startedAt];
  const renewed = () => {
    renewedAt = performance.now();
  };
  return {
    step: () => ({ statement: PUT_NODE, params: params() }),
    renewed,
    async renew() {
      await database.query(PUT_NODE, params());
      renewed();
    },
    doubt() {
      renewedAt = -Infinity;
    },
    isDue: (at) => at - renewedAt >= leaseMs / RENEWALS,
  };
}
