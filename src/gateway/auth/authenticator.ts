import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { after, orElse, dropOldest } from '#wire';
import {
  type Caller,
  anonymousAt,
  ACCOUNT_HEADER,
  isDevelopment,
  nobodyActs,
  refuseStopped,
  roleToAct,
  spends,
  stoppedAccount,
  type AccountState,
  type AccountStates,
  createLimitedAccounts,
  type LimitsStore,
  type MemberStore,
  reaches,
  parseAccountId,
  type Tags,
} from '#accounts';
import { hasCredentials, webRequestOf } from '#http';
import { kindOf } from './api-key.ts';
import { grantOf } from './client-secrets.ts';
import {
  bearerOf,
  CLIENT_SECRET_PREFIX,
  hasKeyHeader,
  readCredential,
  RUN_TOKEN_PREFIX,
  type RunTokens,
  unauthorized,
} from './credential.ts';
import { createKeyCallers, invalidKey, type KeyCallers, type KeyCallersOptions } from './key-callers.ts';
import type { AccessTokens } from './oauth/access-tokens.ts';
import type { OwnTokens } from './oauth/own-tokens.ts';
import { askedOf, pathOf } from './oauth/resources.ts';
import { createSessionCallers, type SessionCallers, type WebSessions } from './sessions/web-sessions.ts';
import type { SessionCookies } from './sessions/session-cookie.ts';
import { readSignIn } from './siwx/header.ts';
import type { SignIn } from './siwx/sign-in.ts';
import { oldTextCounts, refuseRestricted } from './full-rights.ts';
import type { KeyStore } from './key-store.ts';
import { createPlaygroundKeys } from './playground-keys.ts';

const ENDED_RUNS_MAX = 20_000;

export interface AuthenticatorOptions extends KeyCallersOptions {
  readonly limits: Pick<LimitsStore, 'limitsOf' | 'onChange'>;
  /** Default: no account is frozen or closed. */
  readonly states?: Pick<AccountStates, 'stateOf'>;
  /** Default: nobody acts for another account. */
  readonly members?: Pick<MemberStore, 'find'>;
  /** Default: nobody calls for another account in a browser. */
  readonly playgroundKeys?: Pick<KeyStore, 'create' | 'findOfClient'>;
  readonly signIn: SignIn;
  readonly accessTokens?: AccessTokens | null;
  readonly ownTokens?: OwnTokens | null;
  /** Sessions of browsers, and their cookies. Default: cookies are ignored. */
  readonly browsers?: { readonly sessions: WebSessions; readonly cookies: SessionCookies } | null;
  /** null or absent: every run token is refused. */
  readonly runTokens?: RunTokens | null;
  /**
   * The tags of the call of a run token; null if it has ended. Called for each request with a run token. Default: every
   * call runs and has none.
   */
  readonly findRun?: (parent: string) => Promise<{ readonly tags?: Tags | undefined } | null>;
  /**
   * True if calls can be paid for in place. Routes for calls then admit clients without a credential. Default: false.
   */
  readonly anonymous?: boolean;
}

export interface Authenticator {
  /**
   * The caller of a request, by its first credential in this order: a client secret if the route takes it
   * (letSecretCount), a wallet's sign-in, an API key, run token or access token, the cookie of a session if the route
   * takes cookies (letCookieCount). `address` is the client's, for counting
   * failures. `calls`: see Pipeline.admit. If it is false, a run token is refused with `permission_denied`. Throws or
   * rejects with GatewayError `unauthorized`; the text is the same for a key that is unknown, mistyped, revoked,
   * disabled or expired. Also with `rate_limit_exceeded` for an unknown credential from an address with too many
   * failures, with the errors of AccessTokens.verify and SessionCallers, and with the database's error if the lookup of
   * a key failed. Also with `permission_denied` for a closed account.
   */
  readonly authenticate: (headers: IncomingHttpHeaders, address: string, calls?: boolean) => Caller | Promise<Caller>;
  /**
   * The caller as a member that acts for the account in its header. See actFor. Where the account pays for calls, it is
   * the caller of a key, see PlaygroundKeys; only a session acts so.
   */
  readonly act: (headers: IncomingHttpHeaders, own: Caller) => Promise<Caller>;
  /**
   * Adds the budgets of the account to a caller who pays in place, and who became the caller of its wallet's account by
   * the payment.
   */
  readonly withBudgets: (paying: Caller) => Promise<Caller>;
  /**
   * The caller of new calls for work that goes on after its request. `apiKey`: the hash of its API key, null for a
   * caller without one. Rejects with GatewayError `unauthorized` if the key is not valid any more, with
   * `permission_denied` for a frozen or closed account.
   */
  readonly ofStored: (stored: { readonly account: string; readonly apiKey: string | null }) => Promise<Caller>;
  /** The caller by the session cookie alone. null without a cookie. See SessionCallers. */
  readonly bySession: SessionCallers;
  readonly close: () => void;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { signIn, accessTokens = null, ownTokens = null, anonymous = false } = options;
  const keys = createKeyCallers(options);
  const byRun = createRunCallers(options, keys);
  const { attempts, acceptDevelopmentKeys: acceptDevelopment } = options;
  const bySession: SessionCallers = options.browsers
    ? createSessionCallers({ ...options.browsers, keys, attempts, acceptDevelopment, now: options.now })
    : () => null;

  const accounts = createLimitedAccounts(options.limits, options.now);
  const byCredential = (headers: IncomingHttpHeaders, address: string, calls: boolean): Caller | Promise<Caller> =>
    after(proved(headers, address, calls), served);
  const served = (caller: Caller): Caller | Promise<Caller> =>
    after(caller.anonymous ? 'open' : (options.states?.stateOf(caller.account) ?? 'open'), (state) =>
      accounts.limited(unlessClosed(caller, state)),
    );
  const { members = { find: async () => null } } = options;
  const playground = options.playgroundKeys
    ? createPlaygroundKeys({ keys: options.playgroundKeys, callers: keys, now: options.now })
    : null;
  const spending = async ({ session, ...acting }: Caller, member: string): Promise<Caller> => {
    const kind = isDevelopment(acting) ? 'development' : 'live';
    const caller = await playground!.callerOf({ account: acting.account, member, kind });
    return session === undefined ? caller : { ...caller, session };
  };
  const ofKey = (account: string, stored: Caller | Promise<Caller>): Caller | Promise<Caller> =>
    after(stored, (caller) => {
      if (caller.account !== account) throw invalidKey();
      return caller;
    });
  const proved = (headers: IncomingHttpHeaders, address: string, calls: boolean): Caller | Promise<Caller> => {
    const granted = grantOf(headers);
    if (granted !== undefined) return ofKey(granted.account, keys.callerOfSecret(granted.secret));
    const signedIn = readSignIn(headers);
    if (signedIn !== null) return signIn.known(signedIn) ?? signIn.verify(signedIn, address);
    const web = webRequestOf(headers);
    if (web !== undefined && headers.authorization === undefined && !hasKeyHeader(headers)) {
      const caller = bySession(web, address);
      if (caller !== null) return caller;
    }
    if (ownTokens !== null && isProven(headers)) {
      const caller = ownTokens.callerOf(headers, address, keys);
      if (caller !== null) return caller;
    }
    const text = readCredential(headers, signIn.domains.length > 0);
    if (text.startsWith(RUN_TOKEN_PREFIX)) return byRun(text, calls);
    if (text.startsWith(CLIENT_SECRET_PREFIX))
      throw unauthorized('A client secret (ek_…) opens sessions at /realtime alone: send an API key here');
    const kind = kindOf(text);
    if (kind === null && ownTokens !== null) {
      const caller = ownTokens.callerOf(headers, address, keys);
      if (caller !== null) return caller;
    }
    if (kind === null && accessTokens !== null) return byToken(accessTokens, headers, address);
    if (kind === null || kind === 'admin') throw invalidKey();
    return calls || oldTextCounts(headers) ? keys.callerOf(text, address) : keys.callerOfPresent(text, address);
  };

  return {
    authenticate(headers, address, calls = false) {
      if (!anonymous || !calls) return byCredential(headers, address, calls);
      if (!hasCredentials(headers)) return anonymousAt(address);
      return orElse(() => byCredential(headers, address, calls), orPay);
    },
    async withBudgets(paying) {
      const { budgets } = await served(paying);
      return budgets === undefined ? paying : { ...paying, budgets };
    },
    async ofStored({ account, apiKey }) {
      const stopped = options.states ? await refuseStopped(options.states, account) : null;
      if (stopped !== null) throw stopped;
      return served(
        apiKey === null ? { account, key: null, wallet: null } : await ofKey(account, keys.callerOfHash(apiKey)),
      );
    },
    async act(headers, own) {
      if (spends(headers) && (own.session === undefined || playground === null)) throw nobodyActs();
      const member = await actFor(headers, own, options.keys, members);
      const acting = spends(headers) ? await spending(member, own.account) : member;
      return unlessClosed(acting, (await options.states?.stateOf(acting.account)) ?? 'open');
    },
    bySession,
    close() {
      keys.close();
      accounts.close();
    },
  };
}

/** Whether a token comes with a proof of possession (RFC 9449). The scheme is case-insensitive. */
const isProven = ({ authorization }: IncomingHttpHeaders): boolean =>
  authorization !== undefined && /^dpop /i.test(authorization);

function unlessClosed(caller: Caller, state: AccountState): Caller {
  if (state === 'closed') throw stoppedAccount(state);
  return caller;
}

/**
 * The caller of the token in the Authorization header. The other headers are ignored, because clients may
 * fill them with anything. A text that is not a token gets the error of an invalid key.
 */
function byToken(accessTokens: AccessTokens, headers: IncomingHttpHeaders, address: string): Caller | Promise<Caller> {
  const token = bearerOf(headers.authorization ?? '');
  const requested = askedOf(headers);
  const path = requested === undefined ? null : pathOf(requested);
  const caller =
    token === undefined ? null : (accessTokens.known(token, path) ?? accessTokens.verify(token, path, address));
  if (caller === null) throw invalidKey();
  return caller;
}

/**
 * The callers of the run tokens that agents send. The agent has the rights of the key that made the call, as long as
 * the key is valid.
 */
function createRunCallers(
  { runTokens = null, findRun = async () => ({}) }: AuthenticatorOptions,
  keys: KeyCallers,
): (text: string, calls: boolean) => Promise<Caller> {
  // This cache needs no expiry, because a call that has ended stays ended.
  const endedRuns = new Set<string>();
  const runOf = async (parent: string) => {
    if (endedRuns.has(parent)) return null;
    const run = await findRun(parent);
    if (run !== null) return run;
    dropOldest(endedRuns, ENDED_RUNS_MAX - 1);
    endedRuns.add(parent);
    return null;
  };

  return async (text, calls) => {
    const grant = runTokens?.open(text) ?? null;
    if (grant === null) throw invalidKey();
    const { parent, account, key } = grant;
    if (!calls)
      throw new GatewayError(
        'permission_denied',
        'A run token is only for calls of models, tools and agents: use an API key here',
      );
    // This check covers free requests too, although they need no lock.
    const run = await runOf(parent);
    if (run === null)
      throw new GatewayError(
        'permission_denied',
        'The call of this run token has ended, so the token is no longer valid',
      );
    const caller = key === null ? { account, key, wallet: null } : await keys.callerOfHash(key);
    if (caller.account !== account) throw invalidKey();
    return { ...caller, run: { parent, ...(run.tags === undefined ? {} : { tags: run.tags }) } };
  };
}

/**
 * Throws the error of a credential, with the advice to send none: clients that want to pay in place may have sent a
 * dummy key.
 */
function orPay(error: unknown): never {
  if (!(error instanceof GatewayError) || error.code !== 'unauthorized') throw error;
  const { message, headers } = error;
  throw new GatewayError('unauthorized', `${message}. To pay for the call in place, send no credential`, {
    headers,
    cause: error,
  });
}

/**
 * The caller as a member that acts for the account in its header. The membership is looked up for each request, so that
 * a removed member loses access at once. Rejects with GatewayError `not_found` if the caller is not a member of the
 * account. Rejects with `permission_denied` if the role is too low, if the credential may not act for others, or if the
 * route does not allow it.
 */
async function actFor(
  headers: IncomingHttpHeaders,
  caller: Caller,
  keys: Pick<KeyStore, 'findWithLimits'>,
  members: Pick<MemberStore, 'find'>,
): Promise<Caller> {
  const needed = roleToAct(headers);
  if (needed === undefined) throw nobodyActs();
  if (caller.run || caller.anonymous || caller.paying)
    throw new GatewayError('permission_denied', 'Only a wallet, a session or an API key acts for another account');
  await refuseRestricted({ find: keys.findWithLimits }, caller.key, 'act for another account');
  const requested = String(headers[ACCOUNT_HEADER]);
  const member = await members.find(accountOf(requested), caller.account);
  if (member === null) throw new GatewayError('not_found', 'Account not found', { param: ACCOUNT_HEADER });
  const { account, role } = member;
  if (!reaches(role, needed))
    throw new GatewayError('permission_denied', `This needs the role ${needed} of the account: yours is ${role}`);
  const { wallet, session } = caller;
  const acting = {
    account: caller.account,
    role,
    byKey: caller.key !== null && session === undefined,
    development: isDevelopment(caller),
  };
  return { account, key: null, wallet, ...(session ? { session } : {}), member: acting };
}

function accountOf(text: string): string {
  try {
    return parseAccountId(text) ?? text;
  } catch {
    return text;
  }
}
