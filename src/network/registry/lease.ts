import { loadStatement, type Database, type Step } from '#store';
import type { RegistryOptions } from './registry.ts';

const PUT_NODE = loadStatement(import.meta.url, './sql/put-node.sql');

/** Renewals within the duration of a lease. */
const RENEWALS = 3;

interface LeaseOptions extends Pick<RegistryOptions, 'node' | 'now'> {
  readonly database: Pick<Database, 'query'>;
  readonly leaseMs: number;
}

/** This gateway's row in the table of gateways, and the time of its last write. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #startedAt: number;
  #renewedAt = -Infinity;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#startedAt = options.now();
  }

  /** A step that increments the beat. Call `renewed` after the commit of its transaction. */
  step(): Step & { readonly params: readonly (string | number | null)[] } {
    const { node, now } = this.#options;
    return { statement: PUT_NODE, params: [node.id, node.url, now(), this.#startedAt] };
  }

  /** To be called after the commit of a transaction with `step`. */
  renewed(): void {
    this.#renewedAt = performance.now();
  }

  /** Increments the beat. Rejects with the database's error. */
  async renew(): Promise<void> {
    await this.#options.database.query(PUT_NODE, this.step().params);
    this.renewed();
  }

  /** Makes the next beat due at once, because the database may lack the last one. */
  doubt(): void {
    this.#renewedAt = -Infinity;
  }

  /** `at`: monotonic milliseconds. */
  isDue(at: number): boolean {
    return at - this.#renewedAt >= this.#options.leaseMs / RENEWALS;
  }
}
