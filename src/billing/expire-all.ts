import type { Ledger } from './ledger.ts';

const BATCH = 1_000;

/**
 * Expires every lock whose `expiresAt` is at or before `until` (epoch milliseconds). Resolves with the number of locks.
 */
export async function expireAll(ledger: Ledger, until: number): Promise<number> {
  return repeat(() => ledger.expire(until, BATCH));
}

/**
 * Expires every held lock that is not kept, even before its `expiresAt`. Resolves with the number of locks. It is for
 * the start of a gateway that is the only user of its database: the process that made these locks is gone, and so are
 * their calls.
 */
export async function expireOrphans(ledger: Ledger): Promise<number> {
  return repeat(() => ledger.expire(Number.MAX_SAFE_INTEGER, BATCH, 'kept'));
}

async function repeat(expire: () => Promise<readonly string[]>): Promise<number> {
  let total = 0;
  for (;;) {
    const expired = await expire();
    total += expired.length;
    if (expired.length < BATCH) return total;
  }
}
