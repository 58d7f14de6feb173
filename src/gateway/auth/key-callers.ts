import { dropOldest } from '#wire';
import { GatewayError } from '#errors';
import { type Caller, callerLimits, type LimitsStore } from '#accounts';
import { hashKey, parseKey } from './api-key.ts';
import type { Attempts } from './attempts.ts';
import { unauthorized } from './credential.ts';
import { hasRestriction, type KeyStore, type KeyWithLimits } from './key-store.ts';

/** The longest time that this gateway may still accept a key which another gateway revoked. */
const CACHE_TTL_MS = 1_000;
const CACHED_KEYS_MAX = 20_000;
/** Before the hash of a key. A text is known by its own hash alone, because it may be refused where its key is not. */
const BY_ID = 'key ';

export interface KeyCallersOptions {
  readonly keys: Pick<KeyStore, 'findWithLimits' | 'findBySecret' | 'onChange'>;
  readonly limits: Pick<LimitsStore, 'onChange'>;
  readonly attempts: Attempts;
  /** False in production, where development keys are refused like unknown keys. */
  readonly acceptDevelopmentKeys: boolean;
  readonly now: () => number;
}

/**
 * The callers of API keys. Results of the key store are cached for one second from the start of the lookup. So a
 * revocation by any gateway takes effect within a second. A change by this process takes effect at once.
 */
export interface KeyCallers {
  /**
   * The caller of a key. Throws or rejects with GatewayError `unauthorized` for an invalid key, `rate_limit_exceeded`
   * after too many failures from the address, or the database's error.
   */
  callerOf(text: string, address: string): Caller | Promise<Caller>;
  /** Like callerOf, for what the text may do only as the present one. It reads past the cache of a second. */
  callerOfPresent(text: string, address: string): Promise<Caller>;
  /**
   * Like callerOf, for a hash that the gateway itself stored. A stored hash is not a guess, so it is not subject to
   * `attempts`.
   */
  callerOfHash(hash: string): Caller | Promise<Caller>;
  /** The same for the SHA-256 of a text: what the text made ends with it. */
  callerOfSecret(secret: string): Caller | Promise<Caller>;
  close(): void;
}

/** The cached result for one key: its caller, or null for an invalid key. */
interface CachedCaller {
  readonly caller: Caller | null;
  /** The hash of the key, also if it is disabled; null for an unknown one. */
  readonly key: string | null;
  /** Epoch milliseconds from which the result is valid. */
  readonly from: number;
  /** Epoch milliseconds until which it is valid, exclusive. */
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
  const known = new Map<string, CachedCaller>();
  const lookups = new Map<string, Lookup>();
  /** Hashes of recent valid keys by their texts. Hashing costs more than all other work for a known key. */
  const hashes = new Map<string, string>();
  const stopKeys = keys.onChange((hash) => {
    // A key that got another text is known by each, and by its hash. What was found for no key may find this one now.
    for (const [name, { key }] of known) if (key === hash || key === null) known.delete(name);
    // It is not known yet which of them find this key.
    lookups.clear();
  });
  const stopLimits = limits.onChange((account) => {
    for (const [hash, { caller }] of known) if (caller?.account === account) known.delete(hash);
    lookups.clear();
  });

  /**
   * Looks a key up. Caches the result if `counts` says that no change or newer lookup has replaced this lookup. Rejects
   * for an invalid key.
   */
  const read = async (name: string, startedAt: number, counts: () => boolean): Promise<Caller> => {
    const record = await (name.startsWith(BY_ID)
      ? keys.findWithLimits(name.slice(BY_ID.length), startedAt)
      : keys.findBySecret(name, startedAt));
    const caller = knownOf(record, name, startedAt, acceptDevelopmentKeys);
    if (counts()) {
      lookups.delete(name);
      known.delete(name);
      dropOldest(known, CACHED_KEYS_MAX - 1);
      known.set(name, caller);
    }
    if (caller.caller === null) throw invalidKey();
    return caller.caller;
  };

  const authenticate = async (name: string, address: string | null): Promise<Caller> => {
    const startedAt = now();
    const running = lookups.get(name);
    // A lookup that is older than the TTL is not shared: it may have read the key before a revocation that must be in
    // effect by now.
    if (running && startedAt - running.startedAt < CACHE_TTL_MS) return running.result;
    const counts = () => lookups.get(name) === lookup;
    const reading = () => read(name, startedAt, counts);
    // A key that was valid before does not wait because of other clients that fail from the same address.
    const isTrusted = address === null || Boolean(known.get(name)?.caller);
    const lookup: Lookup = {
      startedAt,
      result: isTrusted ? reading() : attempts.check(address, reading),
    };
    lookups.set(name, lookup);
    try {
      return await lookup.result;
    } finally {
      if (counts()) lookups.delete(name);
    }
  };

  /** null if the key must be looked up. Throws for a key that is known to be invalid. */
  const cachedCaller = (name: string): Caller | null => {
    const at = now();
    const cached = known.get(name);
    if (!cached || at < cached.from || at >= cached.until) return null;
    if (cached.caller === null) throw invalidKey();
    return cached.caller;
  };

  return {
    callerOf(text, address) {
      const cachedHash = hashes.get(text);
      const hash = cachedHash ?? hashKey(text);
      // Only well-formed keys are in the cache, so a hit needs no checksum.
      const caller = cachedCaller(hash);
      if (caller === null) {
        if (parseKey(text) === null) throw invalidKey();
        return authenticate(hash, address);
      }
      if (cachedHash === undefined) {
        dropOldest(hashes, CACHED_KEYS_MAX - 1);
        hashes.set(text, hash);
      }
      return caller;
    },
    async callerOfPresent(text, address) {
      if (parseKey(text) === null) throw invalidKey();
      const caller = await authenticate(hashKey(text), address);
      if (caller.key?.replaced === true) throw replacedText();
      return caller;
    },
    callerOfHash: (hash) => cachedCaller(BY_ID + hash) ?? authenticate(BY_ID + hash, null),
    callerOfSecret: (secret) => cachedCaller(secret) ?? authenticate(secret, null),
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
 * The caller of a record, as of the start of its lookup. The result is valid until the earliest of the TTL, the key's
 * expiry, that of its text and the end of a budget's period.
 */
function knownOf(record: KeyWithLimits | null, name: string, at: number, acceptDevelopmentKeys: boolean): CachedCaller {
  let until = at + CACHE_TTL_MS;
  const key = record?.hash ?? null;
  if (record === null || record.disabled || (record.development && !acceptDevelopmentKeys))
    return { caller: null, key, from: at, until };
  if (record.expiresAt !== null) {
    if (record.expiresAt <= at) return { caller: null, key, from: at, until };
    until = Math.min(until, record.expiresAt);
  }
  if (record.secretEndsAt !== null) until = Math.min(until, record.secretEndsAt);
  const limits = callerLimits(record.account, record, record.ofAccount, at);
  until = Math.min(until, limits.until);
  const caller: Caller = {
    account: record.account,
    key: {
      hash: record.hash,
      ...(name.startsWith(BY_ID) ? {} : { secret: name }),
      ...(record.secretEndsAt === null ? {} : { replaced: true }),
      label: record.label,
      development: record.development,
      access: limits.access,
      ...(limits.askAbove === null ? {} : { askAbove: limits.askAbove }),
      ...(limits.tags === null ? {} : { tags: limits.tags }),
      ...(record.continues === null ? {} : { continues: record.continues }),
      ...(record.member === null ? {} : { member: record.member }),
      ...(hasRestriction(record) ? { restricted: true } : {}),
    },
    wallet: null,
    ...(limits.tags === null ? {} : { tags: limits.tags }),
    ...limits.parts,
  };
  return { caller, key, from: at, until };
}

export const invalidKey = (): GatewayError => unauthorized('Invalid API key');

const replacedText = (): GatewayError =>
  new GatewayError(
    'permission_denied',
    'This text of the key was replaced. Until it ends it calls and reads, and nothing else: use the new text of the key here',
  );
