import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, dropOldest } from '#wire';
import { type Caller, anonymousAt, hasCredentials } from '#gateway';
import { hashKey, kindOf, parseKey } from './accounts/api-key.ts';
import type { Attempts } from './attempts.ts';
import { bearerOf, readCredential } from './credential.ts';
import type { KeyRecord, KeyStore } from './key-store.ts';
import type { AccessTokens } from './oauth/access-tokens.ts';
import { RUN_TOKEN_PREFIX, type RunTokens } from './run-tokens.ts';
import { readSignIn } from './siwx/header.ts';
import type { SignIn } from './siwx/sign-in.ts';
import { budgetAt, periodAt } from './accounts/spend-period.ts';

/** The longest that a key revoked by another gateway may still be accepted here. */
const CACHE_TTL_MS = 1_000;
const CACHED_KEYS_MAX = 20_000;
const ENDED_RUNS_MAX = 20_000;

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, 'find' | 'onChange'>;
  readonly signIn: SignIn;
  /** null or absent where the operator has named no issuer. */
  readonly accessTokens?: AccessTokens | null;
  readonly attempts: Attempts;
  /** null or absent where no calls are made under calls. */
  readonly runTokens?: RunTokens | null;
  /** Whether a call goes on under which an agent may call, asked for with each of its requests. Default: it does. */
  readonly runGoesOn?: (parent: string) => Promise<boolean>;
  /** Calls can be paid for in place, so that who has no credential is let in where calls are made. Default false. */
  readonly anonymous?: boolean;
  /** False in production: keys of play money are refused as if unknown. */
  readonly acceptDevelopmentKeys: boolean;
  readonly now: () => number;
}

export interface Authenticator {
  /**
   * Who is calling: by a wallet's sign-in, else by an API key, else by an access token. `address` is the client's,
   * for counting what fails. Rejects with GatewayError `unauthorized`, in the same words for a key that is unknown,
   * mistyped, revoked, disabled or expired; `rate_limit_exceeded` for a credential that is not known to be good,
   * when too many from the address failed; as AccessTokens.verify does; with the database's error when a key had to
   * be looked up and could not be. `calls`: see Pipeline.admit; elsewhere an agent that acts under a running call
   * is refused with `permission_denied`.
   */
  readonly authenticate: (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Promise<Caller>;
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
  readonly result: Promise<Caller>;
}

/**
 * Authenticates by wallet, API key or access token. Answers of the key store are kept for a second counted from the
 * start of the lookup, so that a revocation by any gateway is effective within that second; changes by this process
 * are effective at once.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const {
    keys,
    signIn,
    accessTokens = null,
    runTokens = null,
    runGoesOn = async () => true,
    attempts,
    acceptDevelopmentKeys,
    anonymous = false,
    now,
  } = options;
  const known = new Map<string, Known>();
  const lookups = new Map<string, Lookup>();
  const stop = keys.onChange((hash) => {
    known.delete(hash);
    lookups.delete(hash);
  });

  /**
   * Looks a key up and remembers the answer, if it still is the lookup that counts. Rejects for a key that opens
   * nothing.
   */
  const read = async (hash: string, startedAt: number, counts: () => boolean): Promise<Caller> => {
    const found = knownOf(await keys.find(hash), startedAt, acceptDevelopmentKeys);
    if (counts()) {
      lookups.delete(hash);
      known.delete(hash);
      dropOldest(known, CACHED_KEYS_MAX - 1);
      known.set(hash, found);
    }
    if (found.caller === null) throw invalidKey();
    return found.caller;
  };

  const look = async (hash: string, address: string): Promise<Caller> => {
    const startedAt = now();
    const running = lookups.get(hash);
    // Older than the cache would be: it may have read the key before a revocation that has to be effective by now.
    if (running && startedAt - running.startedAt < CACHE_TTL_MS) return running.result;
    const counts = () => lookups.get(hash) === lookup;
    const reading = () => read(hash, startedAt, counts);
    // A key that was good before is not held up by strangers who fail from the same address.
    const lookup: Lookup = {
      startedAt,
      result: known.get(hash)?.caller ? reading() : attempts.check(address, reading),
    };
    lookups.set(hash, lookup);
    try {
      return await lookup.result;
    } finally {
      if (counts()) lookups.delete(hash);
    }
  };

  const byKey = (text: string, hash: string, address: string): Caller | Promise<Caller> => {
    const at = now();
    const cached = known.get(hash);
    // Only well-formed keys are in the cache, so a hit needs no checksum.
    if (cached && at >= cached.from && at < cached.until) {
      if (cached.caller === null) throw invalidKey();
      return cached.caller;
    }
    if (text !== '' && parseKey(text) === null) throw invalidKey();
    return look(hash, address);
  };

  /** A call that is over stays so. */
  const endedRuns = new Set<string>();
  const goesOn = async (parent: string): Promise<boolean> => {
    if (endedRuns.has(parent)) return false;
    if (await runGoesOn(parent)) return true;
    dropOldest(endedRuns, ENDED_RUNS_MAX - 1);
    endedRuns.add(parent);
    return false;
  };

  /**
   * Who acts under a running call may do what the key may with which that call was made, for as long as the key may.
   */
  const byRun = async (text: string, address: string, calls: boolean): Promise<Caller> => {
    const grant = runTokens?.open(text) ?? null;
    if (grant === null) throw invalidKey();
    if (!calls)
      throw new GatewayError(
        'permission_denied',
        'A run token is for calls of models, tools and agents alone: use an API key here',
      );
    // Also what is free is for the run alone.
    if (!(await goesOn(grant.parent)))
      throw new GatewayError(
        'permission_denied',
        'The call that this run token was given with is over: it opens nothing any more',
      );
    const caller =
      grant.key === null ? { account: grant.account, key: null, wallet: null } : await byKey('', grant.key, address);
    if (caller.account !== grant.account) throw invalidKey();
    return { ...caller, run: { parent: grant.parent } };
  };

  const byCredential = (headers: IncomingHttpHeaders, address: string, calls: boolean): Caller | Promise<Caller> => {
    const signedIn = readSignIn(headers);
    if (signedIn !== null) return signIn.known(signedIn) ?? signIn.verify(signedIn, address);
    const text = readCredential(headers, signIn.domains.length > 0);
    if (text.startsWith(RUN_TOKEN_PREFIX)) return byRun(text, address, calls);
    const kind = kindOf(text);
    if (kind === null && accessTokens !== null) return byToken(accessTokens, headers, address);
    if (kind === null || kind === 'admin') throw invalidKey();
    return byKey(text, hashKey(text), address);
  };

  return {
    async authenticate(headers, address, calls = false) {
      const payable = anonymous && calls;
      if (payable && !hasCredentials(headers)) return anonymousAt(address);
      try {
        return await byCredential(headers, address, calls);
      } catch (error) {
        throw payable && error instanceof GatewayError && error.code === 'unauthorized' ? orPay(error) : error;
      }
    },
    close() {
      stop();
      known.clear();
      lookups.clear();
    },
  };
}

/**
 * The caller of the token in the Authorization header, whatever clients fill `x-api-key` with. Throws for what is
 * no token as for what is no key.
 */
function byToken(
  accessTokens: AccessTokens,
  { authorization = '' }: IncomingHttpHeaders,
  address: string,
): Caller | Promise<Caller> {
  const token = bearerOf(authorization);
  const caller = token === undefined ? null : (accessTokens.known(token) ?? accessTokens.verify(token, address));
  if (caller === null) throw invalidKey();
  return caller;
}

/**
 * The caller of a record at the start of its lookup, and until when that holds: the TTL, or the key's expiry, or
 * the end of its spending period.
 */
function knownOf(record: KeyRecord | null, at: number, acceptDevelopmentKeys: boolean): Known {
  let until = at + CACHE_TTL_MS;
  if (record === null || record.disabled || (record.development && !acceptDevelopmentKeys))
    return { caller: null, from: at, until };
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
    wallet: null,
  };
  return { caller, from: at, until };
}

function invalidKey(): GatewayError {
  return new GatewayError('unauthorized', 'Invalid API key', { headers: { 'www-authenticate': 'Bearer' } });
}

/** Clients fill in a key that they do not have, and would pay. */
function orPay(error: GatewayError): GatewayError {
  const { message, headers } = error;
  return new GatewayError('unauthorized', `${message}. Whoever pays for the call in place sends no credential at all`, {
    headers,
    cause: error,
  });
}
