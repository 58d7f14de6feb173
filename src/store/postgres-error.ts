import { DatabaseError } from './database.ts';

/** PostgreSQL's SQLSTATEs of violated constraints, with the codes that both engines share. */
const CONSTRAINTS: Readonly<Record<string, string>> = {
  '23502': 'not_null_violation',
  '23503': 'foreign_key_violation',
  '23505': 'unique_violation',
  '23514': 'check_violation',
};

/**
 * Codes after which a retry may succeed: the server shuts down, crashed, starts, is out of connections, memory or disk,
 * is a standby, or ended an idle session.
 */
const UNAVAILABLE = /^(08...|53...|57P0[1-5]|58030|25006|25P03|E.*)$/;

const DISK_FULL = '53100';

/**
 * Wraps an error of `pg`. An error of the server has a SQLSTATE. An error without any code counts as a failed
 * connection.
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
