import type { Mutation } from './mutant.ts';

/**
 * What keeps two calls from the same money. Three guards stand one behind the other: the decision's comparison, the row
 * locks that make it true, and the CHECK in the database. `ledger-races-without-guards` takes them out.
 */
export const GUARDS = {
  comparison: {
    file: 'src/billing/ledger/ledger-decide.ts',
    find: 'escrow.available < amount',
    put: 'false',
  },
  rowLocks: {
    file: 'src/billing/sql/ledger-postgres.sql',
    find: 'ANY ($2::text[]) AND stripe IS NULL))\nORDER BY id FOR UPDATE',
    put: 'ANY ($2::text[]) AND stripe IS NULL))\nORDER BY id',
  },
  /** Rows that this gateway knows are compared when a group that was decided on them is written. */
  assumptions: {
    file: 'src/billing/ledger/ledger-postgres.ts',
    find: '[BEGIN, ...assumeSteps(state)]',
    put: '[BEGIN]',
  },
  /** Leases that this gateway knows are compared too, and another gateway that takes one back locks it. */
  leaseAssumptions: {
    file: 'src/billing/ledger/ledger-postgres-write.ts',
    find: '[...steps, accountStripes, budgetStripes]',
    put: '[...steps]',
  },
  leasedRoom: {
    file: 'src/billing/ledger/ledger-decide.ts',
    find: 'spent + locked + leased + amount > budget.limit',
    put: 'spent + locked + amount > budget.limit',
  },
  stripeCheck: {
    file: 'src/foundation/store/migrations/0053_account-stripes.sql',
    find: 'CHECK (available >= 0)',
    put: 'CHECK (available IS NOT NULL)',
  },
  check: {
    file: 'src/foundation/store/migrations/0001_ledger.sql',
    find: "CHECK (available >= 0 OR id LIKE 'treasury:%')",
    put: 'CHECK (available IS NOT NULL)',
  },
  /** On the embedded engine a decision is checked before it is written, as the tables follow later. */
  embeddedCheck: {
    file: 'src/billing/ledger/check-written.ts',
    find: 'available >= 0n || mayBeNegative(id)',
    put: 'true',
  },
  embeddedLendingCheck: {
    file: 'src/billing/ledger/check-written.ts',
    find: 'lent > lendable',
    put: 'false',
  },
  lendingComparison: {
    file: 'src/billing/ledger/ledger-decide.ts',
    find: 'remaining < amount',
    put: 'false',
  },
  lendingCheck: {
    file: 'src/foundation/store/migrations/0009_runs.sql',
    find: 'CHECK (lent >= 0 AND lent <= lendable)',
    put: 'CHECK (lent >= 0)',
  },
} as const satisfies Record<string, Mutation>;
