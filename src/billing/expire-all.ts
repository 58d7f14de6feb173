import type { Ledger } from './ledger.ts';

const BATCH = 1_000;

/** Expires every lock whose time is over at `until`, in epoch milliseconds; resolves with how many. */
export async function expireAll(ledger: Ledger, until: number): Promise<number> {
  return repeat(() => ledger.expire(until, BATCH));
}

/**
 * Expires every held lock that is not kept, whatever its time; resolves with how many. For the start of a gateway
 * that has its database to itself: the calls of those locks ended with the process that made them.
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
