import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { isLoopback, parseHost, placeOf } from '#security';
import { anonymousAt, type Caller, callerCaip10, DEVELOPMENT_ACCOUNT } from '#accounts';
import type { Pipeline } from '#call';
import { addressOf, type WebRequest } from '#http';
import { kindOf } from './api-key.ts';
import { requireAdmission, type CallerOf } from './admission.ts';
import type { Authenticator } from './authenticator.ts';
import { unauthorized } from './credential.ts';
import { isRestricted, requireFreshSignature } from './full-rights.ts';
import type { KeyStore } from './key-store.ts';
import type { Nonces } from './siwx/nonces.ts';
import type { SignIn } from './siwx/sign-in.ts';
import type { SessionCookies } from './sessions/session-cookie.ts';
import { endedSchema, sessionListSchema, sessionSchema, signInSchema } from './sessions/session-schemas.ts';
import type { NewSession, SessionScope, WebSession, WebSessions } from './sessions/web-sessions.ts';

interface SessionRoutesDeps {
  readonly browsers: { readonly sessions: WebSessions; readonly cookies: SessionCookies };
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'bySession'>;
  readonly admit: Pipeline['admit'];
  readonly count: Pipeline['count'];
  readonly keys: Pick<KeyStore, 'find'>;
  readonly signIn: Pick<SignIn, 'domains' | 'known' | 'verify'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly development: boolean;
  readonly people: boolean;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

interface SignInBody {
  readonly siwx?: string;
  readonly api_key?: string;
  readonly development?: true;
}

const TAGS = ['Account'];
const OPEN = { tags: TAGS, security: [] };
const NOBODY = {
  account: null,
  signed_in_by: null,
  rights: null,
  step_up: null,
  wallet: null,
  key: null,
  id: null,
  idle_at: null,
  expires_at: null,
};
/** The proof that a sensitive request needs. A person who signed in just now needs nothing. */
const stepUpOf = ({ method, fresh }: NonNullable<Caller['session']>) =>
  method === 'development' || fresh === true ? null : method;
const iso = (time: number) => new Date(time).toISOString();

/** Sign-in of browsers, and the management of their sessions. Register it under `/api/v1`. */
export function sessionRoutes(deps: SessionRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    beginSession(app, deps);
    showSession(app, deps);
    await app.register(async (own) => {
      const admissionOf = requireAdmission(own, deps.admit);
      const callerOf: CallerOf = (request) => admissionOf(request).caller;
      endOwn(own, deps, callerOf);
      listSessions(own, deps, callerOf);
      endOne(own, deps, callerOf);
    });
  };
}

function beginSession(app: FastifyInstance, deps: SessionRoutesDeps): void {
  const { sessions, cookies } = deps.browsers;
  const schema = {
    ...OPEN,
    summary: 'Sign a browser in',
    description:
      'Begins a session of a wallet, of an API key or of the local developer, and sets its cookie. The cookie is valid only under `/api/v1` and `/v1`, for pages of this gateway, and only if no other credential is sent. ' +
      'Send the header `x-tollgate-web: 1`.',
    body: signInSchema,
    response: { 200: { ...sessionSchema, description: 'The session. `Set-Cookie` has its secret.' } },
  };
  app.post<{ Body: SignInBody }>('/auth/session', { schema }, async (request, reply) => {
    cookies.refuseCrossSite(request);
    cookies.refuseUnkept(request);
    const caller = await signedIn(request, deps);
    const before = readOrNull(cookies, request);
    const { secret, session } = await sessions.begin({
      ...newSessionOf(caller),
      client: request.headers['user-agent'] ?? '',
      network: placeOf(addressOf(request)),
    });
    // A browser has one session, so a new one ends the old one. The secret is always new, so that nobody can plant one
    // in advance (session fixation).
    const replaced = before === null ? null : await sessions.find(before);
    if (replaced !== null) await sessions.end(replaced.id);
    const maxAgeS = Math.floor((session.expiresAt - session.createdAt) / 1_000);
    void reply.header('set-cookie', cookies.write(request, 'account', secret, maxAgeS));
    return answer(reply, await viewOf(session, caller, request, deps));
  });
}

/** The caller whose session begins. Rejects with the GatewayError of the chosen way to sign in. */
async function signedIn(request: FastifyRequest<{ Body: SignInBody }>, deps: SessionRoutesDeps): Promise<Caller> {
  const { siwx, api_key: key } = request.body;
  let caller: Caller;
  if (siwx !== undefined) {
    const signer = deps.signIn.known(siwx) ?? (await deps.signIn.verify(siwx, request.ip));
    // New wallets cost nothing, so their sign-ins count against the client's network before a nonce is stored.
    await deps.count(signInsFrom(request.ip), 1);
    await requireFreshSignature(signer, deps.nonces);
    caller = { ...signer, session: { id: '', method: 'wallet' } };
  } else if (key !== undefined) {
    if (kindOf(key) === 'admin') throw unauthorized('This is the admin key: an operator signs in at /admin/v1/session');
    caller = await deps.authenticator.authenticate({ authorization: `Bearer ${key}` }, request.ip);
    if (caller.key === null)
      throw new GatewayError('permission_denied', 'Only an API key can begin a session, no other token', {
        param: 'api_key',
      });
    caller = { ...caller, session: { id: '', method: 'api_key' } };
  } else {
    if (!mayDevelop(request, deps))
      throw new GatewayError(
        'permission_denied',
        'Only a browser on the machine of a development gateway signs in without a credential: use a wallet or an API key',
        { param: 'development' },
      );
    caller = { account: DEVELOPMENT_ACCOUNT, key: null, wallet: null, session: { id: '', method: 'development' } };
  }
  await deps.count(caller, 1);
  return caller;
}

/**
 * A caller to count sign-ins from an address under. They have the rate of anonymous callers, but are counted separately
 * from anonymous calls.
 */
function signInsFrom(address: string): Caller {
  const stranger = anonymousAt(address);
  return { ...stranger, anonymous: { from: `${stranger.anonymous!.from} signs in` } };
}

const mayDevelop = (request: FastifyRequest, { development }: SessionRoutesDeps): boolean =>
  development && isLocalBrowser(request, request.raw.socket.remoteAddress);

const newSessionOf = ({ account, key, wallet, session }: Caller): Omit<NewSession, 'client'> => ({
  account,
  signedInBy: session!.method,
  keyHash: key?.hash ?? null,
  secret: key?.secret,
  wallet: wallet?.caip10 ?? null,
});

/** null also for a cookie that cannot be read, because it has no session to end. */
function readOrNull(cookies: SessionCookies, request: FastifyRequest): string | null {
  try {
    return cookies.read(request, 'account');
  } catch {
    return null;
  }
}

function showSession(app: FastifyInstance, deps: SessionRoutesDeps): void {
  const { sessions, cookies } = deps.browsers;
  const schema = {
    ...OPEN,
    summary: 'Show the session',
    description:
      'The account whose session the cookie belongs to. Without a session, `account` is null: that is no error.',
    response: { 200: sessionSchema },
  };
  app.get('/auth/session', { schema }, async (request, reply) => {
    const secret = cookies.read(request, 'account');
    if (secret === null) return answer(reply, { ...NOBODY, ways: waysOf(request, deps) });
    try {
      const caller = await deps.authenticator.bySession(request, request.ip);
      const session = await sessions.find(secret);
      if (caller !== null && session !== null) return answer(reply, await viewOf(session, caller, request, deps));
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'unauthorized') throw error;
    }
    void reply.header('set-cookie', cookies.remove(request, 'account'));
    return answer(reply, { ...NOBODY, ways: waysOf(request, deps) });
  });
}

async function viewOf(session: WebSession, caller: Caller, request: FastifyRequest, deps: SessionRoutesDeps) {
  const method = caller.session!.method;
  return {
    account: callerCaip10(caller, deps.networks),
    signed_in_by: method,
    rights: (await isRestricted(deps.keys, caller.key)) ? 'limited' : 'full',
    step_up: stepUpOf(caller.session!),
    wallet: session.wallet,
    key: session.keyHash,
    id: session.id,
    idle_at: iso(deps.browsers.sessions.idleEnd(session)),
    expires_at: iso(session.expiresAt),
    ways: waysOf(request, deps),
  };
}

const waysOf = (request: FastifyRequest, deps: SessionRoutesDeps): readonly string[] => [
  ...(deps.signIn.domains.length > 0 ? ['wallet'] : []),
  'api_key',
  ...(deps.people ? ['person'] : []),
  ...(mayDevelop(request, deps) ? ['development'] : []),
];

const answer = <T>(reply: FastifyReply, body: T): T => {
  void reply.header('cache-control', 'no-store');
  return body;
};

/** The sessions that a caller may list and end. A limited key has only the sessions that began with it. */
async function scopeOf({ account, key }: Caller, { keys }: SessionRoutesDeps): Promise<SessionScope> {
  return { account, keyHash: (await isRestricted(keys, key)) ? key!.hash : null };
}

function endOwn(app: FastifyInstance, deps: SessionRoutesDeps, callerOf: CallerOf): void {
  const { sessions, cookies } = deps.browsers;
  const schema = {
    tags: TAGS,
    summary: 'Sign a browser out',
    description:
      'Ends the session of the cookie. With `all=true` and any credential of the account, it ends every session of the account. They end at once at this gateway, and within 5 seconds at others.',
    querystring: {
      type: 'object',
      properties: { all: { type: 'boolean', default: false, description: 'All sessions of the account.' } },
    },
    response: { 200: endedSchema },
  };
  app.delete<{ Querystring: { readonly all?: boolean } }>('/auth/session', { schema }, async (request, reply) => {
    const caller = callerOf(request);
    const all = request.query.all === true;
    if (!all && caller.session === undefined)
      throw new GatewayError(
        'invalid_request',
        'This request came without a session cookie: all=true ends all sessions of its account',
        { param: 'all' },
      );
    const ended = all
      ? await sessions.endAll(await scopeOf(caller, deps))
      : Number(await sessions.end(caller.session!.id));
    if (caller.session !== undefined) void reply.header('set-cookie', cookies.remove(request, 'account'));
    return { ended };
  });
}

function listSessions(app: FastifyInstance, deps: SessionRoutesDeps, callerOf: CallerOf): void {
  const { sessions } = deps.browsers;
  const schema = {
    tags: TAGS,
    summary: 'List your sessions',
    description: 'Browsers that are signed in to your account, the last used first. A limited key sees only its own.',
    response: { 200: sessionListSchema },
  };
  app.get('/auth/sessions', { schema }, async (request, reply) => {
    const caller = callerOf(request);
    const data = (await sessions.list(await scopeOf(caller, deps))).map((session) => ({
      id: session.id,
      signed_in_by: session.signedInBy,
      wallet: session.wallet,
      key: session.keyHash,
      client: session.client,
      network: session.network,
      created_at: iso(session.createdAt),
      seen_at: iso(session.seenAt),
      idle_at: iso(sessions.idleEnd(session)),
      expires_at: iso(session.expiresAt),
      current: session.id === caller.session?.id,
    }));
    return answer(reply, { data });
  });
}

function endOne(app: FastifyInstance, deps: SessionRoutesDeps, callerOf: CallerOf): void {
  const { sessions, cookies } = deps.browsers;
  const schema = {
    tags: TAGS,
    summary: 'End a session',
    description: 'Signs one browser of your account out: at once at this gateway, within 5 seconds at others.',
    params: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string', maxLength: 64, description: 'Id of the session.' } },
    },
    response: { 200: endedSchema },
  };
  app.delete<{ Params: { readonly id: string } }>('/auth/sessions/:id', { schema }, async (request, reply) => {
    const caller = callerOf(request);
    const { id } = request.params;
    const own = (await sessions.list(await scopeOf(caller, deps))).some((session) => session.id === id);
    if (!own || !(await sessions.end(id))) throw new GatewayError('not_found', 'Session not found', { param: 'id' });
    if (caller.session?.id === id) void reply.header('set-cookie', cookies.remove(request, 'account'));
    return { ended: 1 };
  });
}

/**
 * Whether a request comes from a browser on this machine. The peer's address and the Host must be loopback, and no
 * proxy may have forwarded the request. The check of Host stops DNS rebinding, where a foreign page's domain resolves
 * to this machine and is sent as Host. A proxy may rewrite Host without adding a header, but Origin still has the
 * domain that the visitor's browser used.
 */
function isLocalBrowser({ headers, host }: WebRequest, peer: string | undefined): boolean {
  const address = peer?.replace(/^::ffff:/, '') ?? '';
  const passedOn = Object.keys(headers).some((name) => name.startsWith('x-forwarded-') || PASSED_ON.has(name));
  const isOwnPage = headers.origin === undefined || isLoopback(URL.parse(headers.origin)?.hostname ?? '');
  return isLoopback(address) && !passedOn && isOwnPage && isLoopback(parseHost(host)?.name ?? '');
}

const PASSED_ON: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip']);
