import type { Ledger } from '#billing';

/** The values of `ledger.flush` for tests that hold in both modes: the name, and createLedger's `flushMs`. */
export const FLUSH_MODES = [
  ['each', null],
  ['late', 50],
] as const;

/** A ledger whose callers all say that the ends of their calls may be late, as billing does for plain calls. */
export const lateEnds = (ledger: Ledger): Ledger => ({
  ...ledger,
  lock: (request) => ledger.lock({ ...request, mayBeLate: true }),
  settle: (request) => ledger.settle({ ...request, mayBeLate: true }),
  release: (request) => ledger.release({ ...request, mayBeLate: true }),
});
