import { dropOldest, GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { hashKey, parseKey } from './accounts/api-key.ts';
import type { Attempts } from './attempts.ts';
import { hasRestriction, type KeyStore, type KeyWithLimits } from './key-store.ts';
import { callerLimits } from './limits/caller-limits.ts';
import type { LimitsStore } from './limits/limits-store.ts';

/** The longest that a key revoked by another gateway may still be accepted here. */
const CACHE_TTL_MS = 1_000;
const CACHED_KEYS_MAX = 20_000;

export interface KeyCallersOptions {
  readonly keys: Pick<KeyStore, 'findWithLimits' | 'onChange'>;
  readonly limits: Pick<LimitsStore, 'onChange'>;
  readonly attempts: Attempts;
  /** False in production: keys of play money are refused as if unknown. */
  readonly acceptDevelopmentKeys: boolean;
  readonly now: () => number;
}

/**
 * The callers of API keys. Answers of the key store are kept for a second, counted from the start of the lookup, so
 * that a revocation by any gateway is effective within that second. Changes by this process are effective at once.
 */
export interface KeyCallers {
  /**
   * The caller of a key. Throws or rejects with GatewayError `unauthorized` for a key that opens nothing,
   * `rate_limit_exceeded` when too many from the address failed, and with the database's error.
   */
  callerOf(text: string, address: string): Caller | Promise<Caller>;
  /** callerOf of a key's hash that the gateway itself has noted: it is no guess, so no address is held up for it. */
  callerOfHash(hash: string): Caller | Promise<Caller>;
  close(): void;
}

/** One key's answer: its caller, or null when the key opens nothing. */
interface Known {
  readonly caller: Caller | null;
  /** Valid from here … */
  readonly from: number;
  /** … until here, exclusively. */
  readonly until: number;
}

interface Lookup {
  readonly startedAt: number;
  readonly result: Promise<Caller>;
}

export function createKeyCallers({
  keys,
  limits,
  attempts,
  acceptDevelopmentKeys,
  now,
}: KeyCallersOptions): KeyCallers {
  const known = new Map<string, Known>();
  const lookups = new Map<string, Lookup>();
  /** Hashes of keys that were good lately: a hash costs more than all else that is done for a known key. */
  const hashes = new Map<string, string>();
  const stopKeys = keys.onChange((hash) => {
    known.delete(hash);
    lookups.delete(hash);
  });
  const stopLimits = limits.onChange((account) => {
    for (const [hash, { caller }] of known) if (caller?.account === account) known.delete(hash);
    // Whose they are is not known yet.
    lookups.clear();
  });

  /**
   * Looks a key up and remembers the answer, if it still is the lookup that counts. Rejects for a key that opens
   * nothing.
   */
  const read = async (hash: string, startedAt: number, counts: () => boolean): Promise<Caller> => {
    const found = knownOf(await keys.findWithLimits(hash, startedAt), startedAt, acceptDevelopmentKeys);
    if (counts()) {
      lookups.delete(hash);
      known.delete(hash);
      dropOldest(known, CACHED_KEYS_MAX - 1);
      known.set(hash, found);
    }
    if (found.caller === null) throw invalidKey();
    return found.caller;
  };

  const look = async (hash: string, address: string | null): Promise<Caller> => {
    const startedAt = now();
    const running = lookups.get(hash);
    // Older than the cache would be: it may have read the key before a revocation that has to be effective by now.
    if (running && startedAt - running.startedAt < CACHE_TTL_MS) return running.result;
    const counts = () => lookups.get(hash) === lookup;
    const reading = () => read(hash, startedAt, counts);
    // A key that was good before is not held up by strangers who fail from the same address.
    const isTrusted = address === null || Boolean(known.get(hash)?.caller);
    const lookup: Lookup = {
      startedAt,
      result: isTrusted ? reading() : attempts.check(address, reading),
    };
    lookups.set(hash, lookup);
    try {
      return await lookup.result;
    } finally {
      if (counts()) lookups.delete(hash);
    }
  };

  /** null: it has to be looked up. */
  const cachedCaller = (hash: string): Caller | null => {
    const at = now();
    const cached = known.get(hash);
    if (!cached || at < cached.from || at >= cached.until) return null;
    if (cached.caller === null) throw invalidKey();
    return cached.caller;
  };

  return {
    callerOf(text, address) {
      const kept = hashes.get(text);
      const hash = kept ?? hashKey(text);
      // Only well-formed keys are in the cache, so a hit needs no checksum.
      const caller = cachedCaller(hash);
      if (caller === null) {
        if (parseKey(text) === null) throw invalidKey();
        return look(hash, address);
      }
      if (kept === undefined) {
        dropOldest(hashes, CACHED_KEYS_MAX - 1);
        hashes.set(text, hash);
      }
      return caller;
    },
    callerOfHash: (hash) => cachedCaller(hash) ?? look(hash, null),
    close() {
      stopKeys();
      stopLimits();
      known.clear();
      lookups.clear();
      hashes.clear();
    },
  };
}

/**
 * The caller of a record at the start of its lookup, and until when that holds: the TTL, or the key's expiry, or
 * the end of its spending period.
 */
function knownOf(record: KeyWithLimits | null, at: number, acceptDevelopmentKeys: boolean): Known {
  let until = at + CACHE_TTL_MS;
  if (record === null || record.disabled || (record.development && !acceptDevelopmentKeys))
    return { caller: null, from: at, until };
  if (record.expiresAt !== null) {
    if (record.expiresAt <= at) return { caller: null, from: at, until };
    until = Math.min(until, record.expiresAt);
  }
  const limits = callerLimits(record.account, record, record.ofAccount, at);
  until = Math.min(until, limits.until);
  const caller: Caller = {
    account: record.account,
    key: {
      hash: record.hash,
      label: record.label,
      development: record.development,
      allowedServices: record.allowedServices,
      ...(record.member === null ? {} : { member: record.member }),
      ...(hasRestriction(record) ? { restricted: true } : {}),
    },
    wallet: null,
    ...limits.parts,
  };
  return { caller, from: at, until };
}

export function invalidKey(): GatewayError {
  return new GatewayError('unauthorized', 'Invalid API key', { headers: { 'www-authenticate': 'Bearer' } });
}
