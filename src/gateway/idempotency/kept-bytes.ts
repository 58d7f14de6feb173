/**
 * Decides when to check whether an account keeps more than allowed. The check reads everything that the account keeps,
 * so it does not run after each reply.
 */
interface KeptBytes {
  /** Counts bytes that were kept for an account. Returns true if it is time to check. */
  add(account: string, bytes: number): boolean;
}

/** The check is due after new bytes of 1 / PART of the limit. */
const PART = 8;
const ACCOUNTS_MAX = 10_000;

export function createKeptBytes(max: number): KeptBytes {
  const added = new Map<string, number>();
  return {
    add(account, bytes) {
      const sum = (added.get(account) ?? 0) + bytes;
      // If too many accounts are counted already, this account is checked early instead of being added.
      if (sum * PART < max && (added.size < ACCOUNTS_MAX || added.has(account))) {
        added.set(account, sum);
        return false;
      }
      added.delete(account);
      return true;
    },
  };
}
