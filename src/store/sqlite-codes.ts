import { DatabaseError } from './database.ts';

/** SQLite's extended result codes of violated constraints, with the codes that both engines share. */
const CONSTRAINTS: Readonly<Record<number, string>> = {
  275: 'check_violation',
  787: 'foreign_key_violation',
  1299: 'not_null_violation',
  1555: 'unique_violation',
  2067: 'unique_violation',
};
/**
 * Busy, locked, out of memory, read only, I/O error, disk full, cannot open. The state of the machine causes them, not
 * the statement.
 */
export const UNAVAILABLE: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14]);

const SQLITE_FULL = 13;

export function toDatabaseError(message: string, code: number): DatabaseError {
  return new DatabaseError(message, {
    code: CONSTRAINTS[code] ?? `sqlite_${code}`,
    unavailable: UNAVAILABLE.has(code & 0xff),
    full: (code & 0xff) === SQLITE_FULL,
  });
}
