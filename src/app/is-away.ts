import { LedgerUnavailable } from '#billing';
import { DatabaseError } from '#store';

/** Whether an error says that the database does not answer. */
export const isAway = (error: unknown): boolean =>
  error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.unavailable);
