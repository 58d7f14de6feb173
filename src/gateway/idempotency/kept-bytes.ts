/**
 * Knows when it is time to look whether more is kept for an account than may be: not after each reply, as the look
 * reads all that is kept.
 */
interface KeptBytes {
  /** Bytes were kept for an account. True where it is time. */
  add(account: string, bytes: number): boolean;
}

/** After so many new bytes, as a part of all that may be kept. */
const PART = 8;
const ACCOUNTS_MAX = 10_000;

export function createKeptBytes(max: number): KeptBytes {
  const added = new Map<string, number>();
  return {
    add(account, bytes) {
      const sum = (added.get(account) ?? 0) + bytes;
      // Too many accounts are counted at once: this one is looked at early.
      if (sum * PART < max && (added.size < ACCOUNTS_MAX || added.has(account))) {
        added.set(account, sum);
        return false;
      }
      added.delete(account);
      return true;
    },
  };
}
