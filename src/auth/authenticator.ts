import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, dropOldest } from '#wire';
import { type Caller, anonymousAt, hasCredentials, webRequestOf } from '#gateway';
import { kindOf } from './accounts/api-key.ts';
import { bearerOf, readCredential } from './credential.ts';
import { createLimitedAccounts } from './limits/limited-accounts.ts';
import type { LimitsStore } from './limits/limits-store.ts';
import { createKeyCallers, invalidKey, type KeyCallers, type KeyCallersOptions } from './key-callers.ts';
import { actFor } from './members/act-for.ts';
import type { MemberStore } from './members/member-store.ts';
import type { AccessTokens } from './oauth/access-tokens.ts';
import { RUN_TOKEN_PREFIX, type RunTokens } from './run-tokens.ts';
import { createSessionCallers, type SessionCallers } from './sessions/session-callers.ts';
import type { SessionCookies } from './sessions/session-cookie.ts';
import type { WebSessions } from './sessions/web-sessions.ts';
import { readSignIn } from './siwx/header.ts';
import type { SignIn } from './siwx/sign-in.ts';

const ENDED_RUNS_MAX = 20_000;

export interface AuthenticatorOptions extends KeyCallersOptions {
  readonly limits: Pick<LimitsStore, 'of' | 'onChange'>;
  /** Default: nobody acts for another account. */
  readonly members?: Pick<MemberStore, 'find'>;
  readonly signIn: SignIn;
  /** null or absent where the operator has named no issuer. */
  readonly accessTokens?: AccessTokens | null;
  /** Sessions of browsers, and their cookies. Default: no cookie counts. */
  readonly browsers?: { readonly sessions: WebSessions; readonly cookies: SessionCookies } | null;
  /** null or absent where no calls are made under calls. */
  readonly runTokens?: RunTokens | null;
  /** Whether the call under which an agent acts still runs; asked with each of its requests. Default: it does. */
  readonly runGoesOn?: (parent: string) => Promise<boolean>;
  /**
   * Calls can be paid for in place: routes where calls are made let in a client without a credential. Default false.
   */
  readonly anonymous?: boolean;
}

export interface Authenticator {
  /**
   * The caller: by a wallet's sign-in, else by an API key, else by an access token, else by the cookie of a session
   * where it counts (letCookieCount). `address` is the client's, for counting failures. `calls`: see Pipeline.admit;
   * elsewhere an agent that acts under a running call is refused with `permission_denied`. Throws or rejects with
   * GatewayError `unauthorized`, in the same words for a key that is unknown, mistyped, revoked, disabled or expired;
   * `rate_limit_exceeded` for a credential that is not known to be good, when too many from the address failed; as
   * AccessTokens.verify and SessionCallers do; with the database's error when a key had to be looked up and could not
   * be.
   */
  readonly authenticate: (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Caller | Promise<Caller>;
  /** The caller as a member that acts for the account of its header, see actFor. */
  readonly act: (headers: IncomingHttpHeaders, own: Caller) => Promise<Caller>;
  /** A caller that a payment made the caller of its wallet's account, with the budgets of that account. */
  readonly withBudgets: (paying: Caller) => Promise<Caller>;
  /** The caller by the session cookie alone; null without one. See SessionCallers. */
  readonly bySession: SessionCallers;
  readonly close: () => void;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { signIn, accessTokens = null, anonymous = false } = options;
  const keys = createKeyCallers(options);
  const byRun = createRunCallers(options, keys);
  const { attempts, acceptDevelopmentKeys: acceptDevelopment } = options;
  const bySession: SessionCallers = options.browsers
    ? createSessionCallers({ ...options.browsers, keys, attempts, acceptDevelopment })
    : () => null;

  const accounts = createLimitedAccounts(options.limits, options.now);
  const byCredential = (headers: IncomingHttpHeaders, address: string, calls: boolean): Caller | Promise<Caller> => {
    const caller = proved(headers, address, calls);
    return caller instanceof Promise ? caller.then(accounts.limited) : accounts.limited(caller);
  };
  const { members = { find: async () => null } } = options;
  const proved = (headers: IncomingHttpHeaders, address: string, calls: boolean): Caller | Promise<Caller> => {
    const signedIn = readSignIn(headers);
    if (signedIn !== null) return signIn.known(signedIn) ?? signIn.verify(signedIn, address);
    const web = webRequestOf(headers);
    if (web !== undefined && headers.authorization === undefined && !headers['x-api-key']) {
      const caller = bySession(web, address);
      if (caller !== null) return caller;
    }
    const text = readCredential(headers, signIn.domains.length > 0);
    if (text.startsWith(RUN_TOKEN_PREFIX)) return byRun(text, calls);
    const kind = kindOf(text);
    if (kind === null && accessTokens !== null) return byToken(accessTokens, headers, address);
    if (kind === null || kind === 'admin') throw invalidKey();
    return keys.callerOf(text, address);
  };

  return {
    authenticate(headers, address, calls = false) {
      if (!anonymous || !calls) return byCredential(headers, address, calls);
      if (!hasCredentials(headers)) return anonymousAt(address);
      try {
        const caller = byCredential(headers, address, calls);
        return caller instanceof Promise ? caller.catch(orPay) : caller;
      } catch (error) {
        return orPay(error);
      }
    },
    async withBudgets(paying) {
      const { budgets } = await accounts.limited(paying);
      return budgets === undefined ? paying : { ...paying, budgets };
    },
    act: (headers, own) => actFor(headers, own, { keys: options.keys, members }),
    bySession,
    close() {
      keys.close();
      accounts.close();
    },
  };
}

/**
 * The caller of the token in the Authorization header; clients may fill `x-api-key` with anything. Throws for a text
 * that is not a token as for one that is not a key.
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
 * The callers of run tokens, which agents present. An agent that acts under a running call may do what the key of
 * that call may, for as long as the key may.
 */
function createRunCallers(
  { runTokens = null, runGoesOn = async () => true }: AuthenticatorOptions,
  keys: KeyCallers,
): (text: string, calls: boolean) => Promise<Caller> {
  // A call that has ended stays ended.
  const endedRuns = new Set<string>();
  const goesOn = async (parent: string): Promise<boolean> => {
    if (endedRuns.has(parent)) return false;
    if (await runGoesOn(parent)) return true;
    dropOldest(endedRuns, ENDED_RUNS_MAX - 1);
    endedRuns.add(parent);
    return false;
  };

  return async (text, calls) => {
    const grant = runTokens?.open(text) ?? null;
    if (grant === null) throw invalidKey();
    const { parent, account, key } = grant;
    if (!calls)
      throw new GatewayError(
        'permission_denied',
        'A run token is for calls of models, tools and agents alone: use an API key here',
      );
    // Free requests are for the run alone, too.
    if (!(await goesOn(parent)))
      throw new GatewayError(
        'permission_denied',
        'The call that this run token was given with is over: it opens nothing any more',
      );
    const caller = key === null ? { account, key, wallet: null } : await keys.callerOfHash(key);
    if (caller.account !== account) throw invalidKey();
    return { ...caller, run: { parent } };
  };
}

/** Throws the error of a credential. Clients that could pay may fill in a key that they do not have. */
function orPay(error: unknown): never {
  if (!(error instanceof GatewayError) || error.code !== 'unauthorized') throw error;
  const { message, headers } = error;
  throw new GatewayError('unauthorized', `${message}. Whoever pays for the call in place sends no credential at all`, {
    headers,
    cause: error,
  });
}
