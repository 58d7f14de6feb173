import { hash, randomBytes } from 'node:crypto';
import { loadStatements, type Database, type Row, type Value } from '#store';
import { after, orElse, dropOldest } from '#wire';
import { GatewayError } from '#errors';
import { type Caller, inTurn } from '#accounts';
import type { WebRequest } from '#http';
import type { Attempts } from '../attempts.ts';
import { unauthorized } from '../credential.ts';
import type { KeyCallers } from '../key-callers.ts';
import { turnOfSecrets } from '../key-store.ts';
import type { SessionCookies } from './session-cookie.ts';

type SignedInBy = 'wallet' | 'api_key' | 'development' | 'admin_key' | 'person';

/** The session of a browser that signed in. Times are epoch milliseconds. */
export interface WebSession {
  /** SHA-256 of the cookie's secret, in hex. */
  readonly id: string;
  /** Ledger account; ADMIN for an operator. */
  readonly account: string;
  readonly signedInBy: SignedInBy;
  /** The SHA-256 of the API key, or the HMAC of the admin key. null for a wallet and in development. */
  readonly keyHash: string | null;
  /** CAIP-10 id with the network that the wallet signed for. null without a wallet. */
  readonly wallet: string | null;
  /** The browser's User-Agent. May be empty. */
  readonly client: string;
  /** The network that the session began from. null for a session that is older than this column. */
  readonly network: string | null;
  /** Account of the person who signed in at the company's provider. null for others. */
  readonly person: string | null;
  /** The provider's name of its own session. null without one. */
  readonly sid: string | null;
  readonly createdAt: number;
  /** The time of the last use. It lags behind by at most a minute, or a quarter of the idle time if that is shorter. */
  readonly seenAt: number;
  readonly expiresAt: number;
}

export type NewSession = Pick<WebSession, 'account' | 'signedInBy' | 'keyHash' | 'wallet' | 'client'> &
  Partial<Pick<WebSession, 'network' | 'person' | 'sid'>> & {
    /** SHA-256 of the text of the API key. Another text, which ends the key's sessions, may come at the same time. */
    readonly secret?: string | undefined;
  };

/** The sessions of an account, or only those of one of its keys. */
export interface SessionScope {
  readonly account: string;
  readonly keyHash: string | null;
}

/** Web sessions in the database. Asynchronous methods reject with the database's error. */
export interface WebSessions {
  /**
   * Begins a session. The secret goes into the cookie and is not stored. Rejects with GatewayError `unauthorized` if
   * the text of its key was just replaced.
   */
  begin(fields: NewSession): Promise<{ readonly secret: string; readonly session: WebSession }>;
  /** The session of a cookie. null if it is unknown or over. The result may be up to 5 s old. */
  find(secret: string): Promise<WebSession | null>;
  /** The cached result of `find`. undefined if the session must be looked up. */
  known(secret: string): WebSession | null | undefined;
  /** Whether the last cached result, of any age, was a session. */
  wasGood(secret: string): boolean;
  /** The most recently used first. */
  list(scope: SessionScope): Promise<readonly WebSession[]>;
  end(id: string): Promise<boolean>;
  /** Ends all sessions of the scope. Resolves with their number. */
  endAll(scope: SessionScope): Promise<number>;
  /** Ends the sessions of a person, or only those of one session at the provider. Resolves with their number. */
  endOfPerson(person: string, sid: string | null): Promise<number>;
  /** Ends those of one session at the provider. Resolves with the persons. */
  endOfSid(sid: string): Promise<readonly string[]>;
  /** Epoch milliseconds at which the session ends if it is not used again. */
  idleEnd(session: WebSession): number;
  /** Deletes at most `limit` sessions that are over. Resolves with their number. */
  sweep(limit: number): Promise<number>;
}

interface SessionTimes {
  /** A session ends if it is not used for this time. */
  readonly idleMs: number;
  readonly lifetimeMs: number;
  readonly adminLifetimeMs: number;
}

/** The account of an operator's sessions. No real account has this name. */
export const ADMIN = 'tollgate:admin';

/**
 * Beyond this number, the oldest sessions of a key are deleted. All sessions of an account without a key count
 * together.
 */
const SESSIONS_PER_KEY_MAX = 50;
/** The longest time that this gateway still accepts a session which another gateway ended. */
const CACHE_TTL_MS = 5_000;
const CACHED_MAX = 1_000;
const SEEN_EVERY_MS_MAX = 60_000;
const CLIENT_LENGTH_MAX = 300;
const cleaned = (client: string): string => client.slice(0, CLIENT_LENGTH_MAX).replace(/[^ -~]/g, '?');

const SQL = loadStatements(import.meta.url, './sql/sessions.sql', [
  'insertSession',
  'dropOldestSessions',
  'findSession',
  'listSessions',
  'seeSession',
  'deleteSession',
  'deleteSessions',
  'deleteSessionsOfPerson',
  'deleteSessionsOfSid',
  'sweepSessions',
]);

interface WebSessionsOptions {
  readonly times: SessionTimes;
  readonly now: () => number;
}

export function createWebSessions(
  database: Pick<Database, 'query' | 'batch'>,
  { times: { idleMs, lifetimeMs, adminLifetimeMs }, now }: WebSessionsOptions,
): WebSessions {
  const cached = new Map<string, { readonly session: WebSession | null; readonly from: number }>();
  const seenEveryMs = Math.min(SEEN_EVERY_MS_MAX, idleMs / 4);
  /** Counts the sessions that were ended here. A lookup that began before an end must not cache the session again. */
  let ends = 0;

  const isOver = ({ expiresAt, seenAt }: WebSession, at: number) => at >= expiresAt || at >= seenAt + idleMs;

  const see = (session: WebSession, at: number): WebSession => {
    if (at - session.seenAt < seenEveryMs) return session;
    // A failed write only makes the session end sooner.
    database.query(SQL.seeSession, [session.id, at]).catch(() => {});
    return { ...session, seenAt: at };
  };

  const known = (secret: string): WebSession | null | undefined => {
    const id = idOf(secret);
    const entry = cached.get(id);
    const at = now();
    if (entry === undefined || at < entry.from || at >= entry.from + CACHE_TTL_MS) return undefined;
    return entry.session === null || isOver(entry.session, at) ? null : entry.session;
  };

  const forget = (id: string) => {
    ends += 1;
    cached.delete(id);
  };
  const scoped = ({ account, keyHash }: SessionScope): Value[] => [account, keyHash === null ? 0 : 1, keyHash ?? ''];

  return {
    known,
    wasGood: (secret) => Boolean(cached.get(idOf(secret))?.session),
    idleEnd: ({ seenAt }) => seenAt + idleMs,

    async begin({ account, signedInBy, keyHash, wallet, client, network = null, person = null, sid = null, ...key }) {
      const secret = randomBytes(32).toString('base64url');
      const at = now();
      const expiresAt = at + (account === ADMIN ? adminLifetimeMs : lifetimeMs);
      const who = [idOf(secret), account, signedInBy, keyHash, wallet, cleaned(client), network, person, sid];
      const insert = { statement: SQL.insertSession, params: [...who, at, expiresAt, key.secret ?? null] };
      const [row] = await (keyHash === null
        ? database.query(insert.statement, insert.params)
        : inTurn(database, turnOfSecrets(keyHash), [insert]));
      if (row === undefined) throw sessionOver();
      const dropped = await database.query(SQL.dropOldestSessions, [account, keyHash ?? '', SESSIONS_PER_KEY_MAX]);
      for (const { id } of dropped) forget(id as string);
      return { secret, session: sessionOf(row) };
    },

    async find(secret) {
      const knownSession = known(secret);
      if (knownSession !== undefined) return knownSession;
      const id = idOf(secret);
      const [from, before] = [now(), ends];
      const [row] = await database.query(SQL.findSession, [id]);
      const stored = row === undefined ? null : sessionOf(row);
      const session = stored === null || isOver(stored, from) ? null : see(stored, from);
      if (ends === before) {
        cached.delete(id);
        cached.set(id, { session, from });
        dropOldest(cached, CACHED_MAX);
      }
      return session;
    },

    async list(scope) {
      const at = now();
      return (await database.query(SQL.listSessions, [...scoped(scope), at, at - idleMs])).map(sessionOf);
    },

    async end(id) {
      const gone = await database.query(SQL.deleteSession, [id]);
      forget(id);
      return gone.length > 0;
    },

    async endAll(scope) {
      const gone = await database.query(SQL.deleteSessions, scoped(scope));
      for (const { id } of gone) forget(id as string);
      return gone.length;
    },

    async endOfPerson(person, sid) {
      const gone = await database.query(SQL.deleteSessionsOfPerson, [person, sid ?? '']);
      for (const { id } of gone) forget(id as string);
      return gone.length;
    },

    async endOfSid(sid) {
      const gone = await database.query(SQL.deleteSessionsOfSid, [sid]);
      for (const { id } of gone) forget(id as string);
      return [...new Set(gone.map(({ person }) => person as string))];
    },

    async sweep(limit) {
      const at = now();
      return (await database.query(SQL.sweepSessions, [at, at - idleMs, limit])).length;
    },
  };
}

const idOf = (secret: string): string => hash('sha256', secret);

const sessionOf = (row: Row): WebSession => ({
  id: row['id'] as string,
  account: row['account'] as string,
  signedInBy: row['signed_in_by'] as SignedInBy,
  keyHash: row['key_hash'] as string | null,
  wallet: row['wallet'] as string | null,
  client: row['client'] as string,
  network: row['network'] as string | null,
  person: row['person'] as string | null,
  sid: row['sid'] as string | null,
  createdAt: Number(row['created_at']),
  seenAt: Number(row['seen_at']),
  expiresAt: Number(row['expires_at']),
});

export interface LookupDeps {
  readonly sessions: Pick<WebSessions, 'known' | 'wasGood' | 'find'>;
  readonly attempts: Attempts;
}

/**
 * Looks up the session of a cookie. A cookie without a recent valid session may be a guess, so `attempts` counts it. A
 * cookie that was valid does not wait because of other clients that fail from the same address. `accept` throws
 * GatewayError `unauthorized` for a session that is not valid. It must do nothing else, because it runs inside
 * `attempts.check`, which limits concurrency.
 */
export function findGuarded(
  { sessions, attempts }: LookupDeps,
  secret: string,
  address: string,
  accept: (session: WebSession | null) => WebSession,
): WebSession | Promise<WebSession> {
  const known = sessions.known(secret);
  if (known !== undefined) return accept(known);
  const checkSession = async () => accept(await sessions.find(secret));
  return sessions.wasGood(secret) ? checkSession() : attempts.check(address, checkSession);
}

interface SessionCallersOptions extends LookupDeps {
  readonly cookies: SessionCookies;
  readonly keys: Pick<KeyCallers, 'callerOfHash'>;
  readonly acceptDevelopment: boolean;
  readonly now: () => number;
}

/**
 * The caller of a request by its session cookie. null without a cookie. A session that an API key began has the rights
 * of the key, as long as the key is valid. Throws or rejects with GatewayError `unauthorized` if the session is over,
 * `permission_denied` for a request from another site, `rate_limit_exceeded` after too many failures from the address.
 */
export type SessionCallers = (request: WebRequest, address: string) => Caller | Promise<Caller> | null;

export function createSessionCallers(options: SessionCallersOptions): SessionCallers {
  const { cookies, keys, acceptDevelopment, now } = options;

  const callerOf = (session: WebSession): Caller | Promise<Caller> => {
    const { id, account, signedInBy, keyHash, wallet, createdAt } = session;
    if (signedInBy === 'wallet' && wallet !== null)
      return { account, key: null, wallet: { caip10: wallet, nonce: null }, session: { id, method: signedInBy } };
    if (signedInBy === 'development' && acceptDevelopment)
      return { account, key: null, wallet: null, session: { id, method: signedInBy } };
    if (signedInBy === 'person' && account !== ADMIN)
      return {
        account,
        key: null,
        wallet: null,
        session: { id, method: signedInBy, fresh: isFresh(createdAt, now()) },
      };
    if (signedInBy !== 'api_key' || keyHash === null) throw sessionOver();
    const withSession = (caller: Caller): Caller => ({ ...caller, session: { id, method: 'api_key' } });
    return after(
      orElse(() => keys.callerOfHash(keyHash), endedWithKey),
      withSession,
    );
  };

  return (request, address) => {
    const secret = cookies.read(request, 'account');
    if (secret === null) return null;
    cookies.refuseCrossSite(request);
    return after(findGuarded(options, secret, address, notOver), callerOf);
  };
}

/** How long a sign-in at the company's provider is a proof for what needs more than a cookie. */
const FRESH_MS = 15 * 60_000;
export const isFresh = (createdAt: number, at: number): boolean => at - createdAt < FRESH_MS;

function notOver(session: WebSession | null): WebSession {
  if (session === null) throw sessionOver();
  return session;
}

const sessionOver = () => unauthorized('This session is over: sign in again', 'Bearer, SIWx');

function endedWithKey(error: unknown): never {
  throw error instanceof GatewayError && error.code === 'unauthorized' ? sessionOver() : error;
}
