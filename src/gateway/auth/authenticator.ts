import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { hashKey, kindOf, parseKey } from './api-key.ts';
import { readCredential } from './credential.ts';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { budgetAt, periodAt } from './spend-period.ts';

/** The longest that a key revoked by another gateway may still be accepted here. */
const CACHE_TTL_MS = 1_000;
const CACHED_KEYS_MAX = 20_000;

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, 'find' | 'onChange'>;
  /** False in production: keys of play money are refused as if unknown. */
  readonly acceptDevelopmentKeys: boolean;
  readonly now: () => number;
}

export interface Authenticator {
  /**
   * Who is calling. Rejects with GatewayError `unauthorized`, in the same words for a key that is unknown, mistyped, revoked, disabled or expired;
   * with the database's error when a key had to be looked up and could not be.
   */
  readonly authenticate: (headers: IncomingHttpHeaders) => Promise<Caller>;
  readonly close: () => void;
}

/** One key's answer, for a second at most: the caller, or null when the key opens nothing. */
interface Known {
  readonly caller: Caller | null;
  /** Valid from here … */
  readonly from: number;
  /** … until here, exclusively. */
  readonly until: number;
}

interface Lookup {
  readonly startedAt: number;
  readonly result: Promise<Caller | null>;
}

/**
 * Authenticates by API key. Answers of the key store are kept for a second counted from the start of the lookup,
 * so that a revocation by any gateway is effective within that second; changes by this process are effective at once.
 */
export function createAuthenticator({ keys, acceptDevelopmentKeys, now }: AuthenticatorOptions): Authenticator {
  const known = new Map<string, Known>();
  const lookups = new Map<string, Lookup>();
  const stop = keys.onChange((hash) => {
    known.delete(hash);
    lookups.delete(hash);
  });

  const look = (hash: string): Promise<Caller | null> => {
    const startedAt = now();
    const running = lookups.get(hash);
    // Older than the cache would be: it may have read the key before a revocation that has to be effective by now.
    if (running && startedAt - running.startedAt < CACHE_TTL_MS) return running.result;
    const lookup: Lookup = {
      startedAt,
      result: keys.find(hash).then(
        (record) => {
          const found = knownOf(record, startedAt, acceptDevelopmentKeys);
          if (lookups.get(hash) === lookup) {
            lookups.delete(hash);
            known.delete(hash);
            if (known.size >= CACHED_KEYS_MAX) known.delete(known.keys().next().value!);
            known.set(hash, found);
          }
          return found.caller;
        },
        (error: unknown) => {
          if (lookups.get(hash) === lookup) lookups.delete(hash);
          throw error;
        },
      ),
    };
    lookups.set(hash, lookup);
    return lookup.result;
  };

  return {
    async authenticate(headers) {
      const text = readCredential(headers);
      const kind = kindOf(text);
      if (kind === null || kind === 'admin') throw invalidKey();
      const hash = hashKey(text);
      const at = now();
      const cached = known.get(hash);
      // Only well-formed keys are in the cache, so a hit needs no checksum.
      if (cached && at >= cached.from && at < cached.until) {
        if (cached.caller === null) throw invalidKey();
        return cached.caller;
      }
      if (parseKey(text) === null) throw invalidKey();
      const caller = await look(hash);
      if (caller === null) throw invalidKey();
      return caller;
    },
    close() {
      stop();
      known.clear();
      lookups.clear();
    },
  };
}

/** The caller of a record at the start of its lookup, and until when that holds: the TTL, or the key's expiry, or the end of its spending period. */
function knownOf(record: KeyRecord | null, at: number, acceptDevelopmentKeys: boolean): Known {
  let until = at + CACHE_TTL_MS;
  if (record === null || record.disabled || (record.development && !acceptDevelopmentKeys)) return { caller: null, from: at, until };
  if (record.expiresAt !== null) {
    if (record.expiresAt <= at) return { caller: null, from: at, until };
    until = Math.min(until, record.expiresAt);
  }
  if (record.limit !== null && record.limitReset !== null) until = Math.min(until, periodAt(record.limitReset, at).end);
  const caller: Caller = {
    account: record.account,
    key: {
      hash: record.hash,
      label: record.label,
      development: record.development,
      allowedServices: record.allowedServices,
      budget: budgetAt(record, at),
    },
  };
  return { caller, from: at, until };
}

function invalidKey(): GatewayError {
  return new GatewayError('unauthorized', 'Invalid API key', { headers: { 'www-authenticate': 'Bearer' } });
}
