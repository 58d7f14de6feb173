import { isPlain, type LockRow } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import type { Operation } from './ledger-operations.ts';
import { Recently } from './recently.ts';

const LOCKS = 50_000;

/**
 * Held locks that this gateway has made, so that it need not read them to resolve them. Only what cannot change while
 * they are held: a lock that lends or is kept is read. Whether it is still held the write finds out.
 */
export class OwnLocks {
  readonly #rows = new Recently<LockRow>(LOCKS);

  get(id: string): LockRow | undefined {
    return this.#rows.get(id);
  }

  /** Takes over what a group has changed, once it is committed. */
  take({ newLocks, resolvedLocks, changedLocks }: Decision): void {
    for (const row of newLocks) if (row.resolvedAt === null && isPlain(row)) this.#rows.set(row.id, row);
    for (const row of resolvedLocks) this.#rows.delete(row.id);
    for (const { row } of changedLocks) this.#rows.delete(row.id);
  }

  /** After a failure: what the database has is read. */
  forget(operations: readonly Operation[]): void {
    for (const { request } of operations) this.#rows.delete(request.id);
  }
}
