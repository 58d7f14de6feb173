import { DatabaseError } from './database.ts';

/** PostgreSQL's SQLSTATE of broken constraints, in the words that both engines share. */
const CONSTRAINTS: Readonly<Record<string, string>> = {
  '23502': 'not_null_violation',
  '23503': 'foreign_key_violation',
  '23505': 'unique_violation',
  '23514': 'check_violation',
};

/**
 * Server shutting down, crashed, starting, out of connections or of memory, a session ended for idling, a standby:
 * it may work again later.
 */
const UNAVAILABLE = /^(08...|53...|57P0[1-5]|58030|25006|25P03|E.*)$/;

const DISK_FULL = '53100';

/**
 * Wraps what `pg` throws: an error of the server by its SQLSTATE; everything without one is a connection that failed.
 */
export function toDatabaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const message = error instanceof Error ? error.message || error.name : String(error);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'connection';
  const unavailable = code === 'connection' || UNAVAILABLE.test(code);
  return new DatabaseError(message || code, {
    code: CONSTRAINTS[code] ?? code,
    unavailable,
    full: code === DISK_FULL,
    cause: error,
  });
}
