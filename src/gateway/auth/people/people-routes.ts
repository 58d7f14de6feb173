import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { createSealedTexts, placeOf, type SealSecret } from '#security';
import { anonymousAt, type Caller } from '#accounts';
import { addressOf, cookieValues, readBytes } from '#http';
import type { Pipeline } from '#call';
import type { Attempts } from '../attempts.ts';
import type { Nonces } from '../siwx/nonces.ts';
import { createNetworkGate } from '../administrators/admin-gate.ts';
import type { SessionCookies } from '../sessions/session-cookie.ts';
import { ADMIN, type WebSessions } from '../sessions/web-sessions.ts';
import type { People } from './people.ts';
import type { Person } from './people-store.ts';
import { type Pending, type PeopleProvider, ProviderAway, ProviderRefusal } from './provider.ts';

interface PeopleRoutesDeps {
  readonly provider: PeopleProvider;
  readonly people: People;
  readonly browsers: { readonly sessions: WebSessions; readonly cookies: SessionCookies };
  readonly nonces: Pick<Nonces, 'useOnce'>;
  readonly count: Pipeline['count'];
  readonly attempts: Attempts;
  /** IP addresses and networks that administrators may come from. Empty: all. */
  readonly adminNetworks: readonly string[];
  /** The gateway's own origin. null before it is known. */
  readonly origin: () => string | null;
  /** 32 bytes that the gateways share. */
  readonly secret: SealSecret;
  readonly onError: (error: unknown) => void;
  readonly now: () => number;
}

/** The reason why a sign-in ended without a session. The page of sign-in has a text for each. */
type PeopleFailure = 'away' | 'refused' | 'over' | 'no_access' | 'too_many';

const BASE = '/auth/people';
const CALLBACK = `/api/v1${BASE}/callback`;
const PENDING_MS = 10 * 60_000;
const HOME = '/dashboard';
/** Navigations of a browser and of a provider, which no program calls. */
const HIDDEN = { hide: true };

/** Sign-in of the company's people by OpenID Connect. Register it under `/api/v1`. */
export function peopleRoutes(deps: PeopleRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    start(app, deps);
    callback(app, deps);
    await app.register(async (own) => logout(own, deps));
  };
}

interface Sealed extends Pending {
  readonly to: string;
  readonly until: number;
}

/**
 * The sign-ins under way, one for each tab, sealed into a cookie of the browser that began them, so that any gateway
 * goes on with them.
 */
function pendingCookie({ secret, origin, now }: PeopleRoutesDeps) {
  const seals = createSealedTexts(secret);
  const isSecure = () => origin()?.startsWith('https:') ?? false;
  const name = () => {
    const port = new URL(origin() ?? 'http://localhost').port;
    return isSecure() ? '__Host-tollgate-people' : `tollgate-people${port === '' ? '' : `-${port}`}`;
  };
  // Lax, because the provider sends the person back from another site.
  const cookie = (value: string, maxAgeS: number) =>
    `${name()}=${value}; Path=/;${isSecure() ? ' Secure;' : ''} HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}`;
  return {
    /** `pendings`: the newest first. The oldest go where a cookie has no room for them. */
    write(pendings: readonly Sealed[]): string {
      if (pendings.length === 0) return cookie('', 0);
      let bytes;
      for (let count = pendings.length; bytes === undefined || bytes.length > PENDING_BYTES; count -= 1)
        bytes = Buffer.from(JSON.stringify(pendings.slice(0, count)));
      return cookie(seals.sealBytes(OWNER, bytes).toString('base64url'), PENDING_MS / 1_000);
    },
    read(request: FastifyRequest): readonly Sealed[] {
      const [value, second] = cookieValues(request.headers.cookie ?? '', name());
      if (value === undefined || second !== undefined) return [];
      const bytes = seals.openBytes(OWNER, Buffer.from(value, 'base64url'));
      const pendings = bytes === null ? [] : (JSON.parse(bytes.toString()) as Sealed[]);
      return pendings.filter(({ until }) => until > now());
    },
  };
}
const OWNER = 'people';
/** A browser keeps cookies of 4,096 characters. One sign-in has at most 1,300 bytes, and usually 250. */
const PENDING_BYTES = 2_600;

/** A path of this gateway, or the dashboard: an address of another site would be an open redirect. */
export function ownPath(text: unknown): string {
  const base = 'http://own.invalid';
  const url = typeof text === 'string' && text.length <= 1_000 ? URL.parse(text, base) : null;
  return url?.origin === base && !url.pathname.startsWith('//') ? url.pathname + url.search : HOME;
}

const failed = (why: PeopleFailure, to: string) =>
  `/sign-in?people=${why}${to === HOME ? '' : `&next=${encodeURIComponent(to)}`}`;

function visitorAt(request: FastifyRequest): Caller {
  const stranger = anonymousAt(addressOf(request));
  return { ...stranger, anonymous: { from: `${stranger.anonymous!.from} signs in` } };
}

function start(app: FastifyInstance, deps: PeopleRoutesDeps): void {
  const { provider, count, origin, now, onError } = deps;
  const cookie = pendingCookie(deps);
  app.get<{ Querystring: { readonly to?: unknown } }>(`${BASE}/start`, { schema: HIDDEN }, async (request, reply) => {
    const to = ownPath(request.query.to);
    void reply.header('cache-control', 'no-store');
    // Another site may not begin a sign-in here.
    if (request.headers['sec-fetch-site'] === 'cross-site')
      return reply.redirect(`/sign-in?next=${encodeURIComponent(to)}`);
    const own = origin();
    if (own === null)
      throw new GatewayError('not_found', 'Nobody can sign in here yet: the operator has to set server.public_url');
    try {
      await count(visitorAt(request), 1);
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'rate_limit_exceeded')
        return reply.redirect(failed('too_many', to));
      throw error;
    }
    let begun;
    try {
      begun = await provider.begin(own + CALLBACK);
    } catch (error) {
      onError(error);
      return reply.redirect(failed('away', to));
    }
    const pending = { ...begun.pending, to, until: now() + PENDING_MS };
    void reply.header('set-cookie', cookie.write([pending, ...cookie.read(request)]));
    return reply.redirect(begun.url.href);
  });
}

function callback(app: FastifyInstance, deps: PeopleRoutesDeps): void {
  const { provider, people, nonces, origin, onError } = deps;
  const cookie = pendingCookie(deps);
  app.get(`${BASE}/callback`, { schema: HIDDEN }, async (request, reply) => {
    const pendings = cookie.read(request);
    const pending = pendings.find(({ state }) => state === (request.query as { readonly state?: unknown }).state);
    const cookies = [cookie.write(pendings.filter((one) => one !== pending))];
    void reply
      .header('cache-control', 'no-store')
      .header('set-cookie', cookies)
      .header('referrer-policy', 'no-referrer');
    const own = origin();
    if (pending === undefined || own === null) return reply.redirect(failed('over', HOME));
    const { to } = pending;
    if (!(await nonces.useOnce(`people ${pending.state}`, pending.until))) return reply.redirect(failed('over', to));
    const { search } = new URL(request.url, own);
    let person: Person | null;
    let sid: string | null;
    try {
      const claims = await provider.finish(new URL(own + CALLBACK + search), pending);
      ({ sid } = claims);
      person = await people.arrived(claims);
    } catch (error) {
      if (!(error instanceof ProviderAway) && !(error instanceof ProviderRefusal)) throw error;
      onError(error);
      return reply.redirect(failed(error instanceof ProviderAway ? 'away' : 'refused', to));
    }
    if (person === null) return reply.redirect(failed('no_access', to));
    cookies.push(...(await begin(request, deps, person, sid)));
    void reply.header('set-cookie', cookies);
    return reply.redirect(`/sign-in?people=done&next=${encodeURIComponent(to)}`);
  });
}

/** Begins the sessions of a person: that of the account, and that of an administrator where there are rights. */
async function begin(
  request: FastifyRequest,
  { browsers: { sessions, cookies }, adminNetworks }: PeopleRoutesDeps,
  { account, adminRoles }: Person,
  sid: string | null,
): Promise<string[]> {
  const client = request.headers['user-agent'] ?? '';
  const network = placeOf(addressOf(request));
  const fields = { signedInBy: 'person', wallet: null, client, network, person: account, sid } as const;
  const set = async (kind: 'account' | 'admin') => {
    const owner = kind === 'admin' ? { account: ADMIN, keyHash: account } : { account, keyHash: null };
    const before = readOrNull(cookies, request, kind);
    const { secret, session } = await sessions.begin({ ...fields, ...owner });
    const replaced = before === null ? null : await sessions.find(before);
    if (replaced !== null) await sessions.end(replaced.id);
    return cookies.write(request, kind, secret, Math.floor((session.expiresAt - session.createdAt) / 1_000));
  };
  const own = await set('account');
  return adminRoles.length > 0 && isInside(adminNetworks, request.ip) ? [own, await set('admin')] : [own];
}

function readOrNull(cookies: SessionCookies, request: FastifyRequest, kind: 'account' | 'admin'): string | null {
  try {
    return cookies.read(request, kind);
  } catch {
    return null;
  }
}

function isInside(networks: readonly string[], address: string): boolean {
  try {
    createNetworkGate(networks)(address);
    return true;
  } catch {
    return false;
  }
}

/** OpenID Connect Back-Channel Logout 1.0. */
function logout(app: FastifyInstance, { provider, people, nonces, attempts, now, onError }: PeopleRoutesDeps): void {
  app.addContentTypeParser('application/x-www-form-urlencoded', readBytes(1));
  const answer = (reply: FastifyReply) => reply.header('cache-control', 'no-store');
  const refuse = (reply: FastifyReply, why: string) =>
    answer(reply).code(400).send({ error: 'invalid_request', error_description: why });
  app.post(`${BASE}/logout`, { schema: HIDDEN }, async (request, reply) => {
    const form = new URLSearchParams(Buffer.isBuffer(request.body) ? request.body.toString() : '');
    const [token, second] = form.getAll('logout_token');
    if (token === undefined || second !== undefined) return refuse(reply, 'send one logout_token in a form');
    let logoutToken;
    try {
      logoutToken = await attempts.check(addressOf(request), () => readToken(provider, token));
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'unauthorized') throw error;
      onError(error);
      return refuse(reply, error.message);
    }
    if (!(await nonces.useOnce(`people logout ${logoutToken.jti}`, now() + KEPT_MS)))
      return refuse(reply, 'this logout_token was used before');
    await people.logout(logoutToken);
    return answer(reply).code(200).send();
  });
}

/** Longer than the age up to which a logout token is accepted. */
const KEPT_MS = 30 * 60_000;

async function readToken(provider: PeopleProvider, token: string) {
  try {
    return await provider.readLogout(token);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError('unauthorized', `this logout_token is not right: ${(error as Error).message}`.slice(0, 300));
  }
}
