import { isPlain, type LockRow } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import type { Operation } from './ledger-operations.ts';
import { Recently } from './recently.ts';

const LOCKS = 50_000;

/**
 * Held locks that this gateway made, so that it can resolve them without reading them. Only locks whose columns cannot
 * change while they are held: a lock that lends or is kept must be read. The write itself checks that the lock is still
 * held.
 */
export class OwnLocks {
  readonly #rows = new Recently<LockRow>(LOCKS);

  get(id: string): LockRow | undefined {
    return this.#rows.get(id);
  }

  /** Applies a group's changes. Call it after the group is committed. */
  take({ newLocks, resolvedLocks, changedLocks }: Decision): void {
    for (const row of newLocks) if (row.resolvedAt === null && isPlain(row)) this.#rows.set(row.id, row);
    for (const row of resolvedLocks) this.#rows.delete(row.id);
    for (const { row } of changedLocks) this.#rows.delete(row.id);
  }

  /** For use after a failure: the next attempt reads the locks from the database. */
  forget(operations: readonly Operation[]): void {
    for (const { request } of operations) this.#rows.delete(request.id);
  }
}
