import { loadStatement, type Database, type Step } from '#store';
import type { RegistryOptions } from './registry.ts';

const PUT_NODE = loadStatement(import.meta.url, './sql/put-node.sql');

/** Renewals in the time of a lease. */
const RENEWALS = 3;

interface LeaseOptions extends Pick<RegistryOptions, 'node' | 'now'> {
  readonly database: Pick<Database, 'query'>;
  readonly leaseMs: number;
}

/** This gateway's own row among the gateways of the database, and when it was written last. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #startedAt: number;
  #renewedAt = -Infinity;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#startedAt = options.now();
  }

  /** Raises the beat; for a transaction that ends with `renewed`. */
  step(): Step & { readonly params: readonly (string | number | null)[] } {
    const { node, now } = this.#options;
    return { statement: PUT_NODE, params: [node.id, node.url, now(), this.#startedAt] };
  }

  /** A transaction with `step` was committed. */
  renewed(): void {
    this.#renewedAt = performance.now();
  }

  /** Raises the beat. Rejects with the database's error. */
  async renew(): Promise<void> {
    await this.#options.database.query(PUT_NODE, this.step().params);
    this.renewed();
  }

  /** The database may not have the last beat: the next one is due at once. */
  doubt(): void {
    this.#renewedAt = -Infinity;
  }

  /** `at`: monotonic milliseconds. */
  isDue(at: number): boolean {
    return at - this.#renewedAt >= this.#options.leaseMs / RENEWALS;
  }
}
