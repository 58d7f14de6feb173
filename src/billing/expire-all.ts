import type { Ledger } from './ledger.ts';

const BATCH = 1_000;

/** Expires every lock whose time is over at `until`, in epoch milliseconds; resolves with how many. */
export async function expireAll(ledger: Ledger, until: number): Promise<number> {
  let total = 0;
  for (;;) {
    const expired = await ledger.expire(until, BATCH);
    total += expired.length;
    if (expired.length < BATCH) return total;
  }
}
