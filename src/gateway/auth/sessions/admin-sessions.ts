import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { type SealSecret, secretsOf } from '#security';
import type { WebRequest } from '#http';
import { findGuarded, isFresh, type LookupDeps, ADMIN, type WebSession, type WebSessions } from './web-sessions.ts';
import { hashKey } from '../api-key.ts';
import { bearerOf, unauthorized } from '../credential.ts';
import type { SessionCookies } from './session-cookie.ts';
import { type AdminGate, createNetworkGate } from '../administrators/admin-gate.ts';
import { type AdminKeys, type Administrator, type AdminRole, isReading, ROOT } from '../administrators/admin-keys.ts';

/** `ip`: the client's address. */
type FromAddress = WebRequest & { readonly ip: string };
type AdminRequest = FromAddress & { readonly url: string; readonly headers: IncomingHttpHeaders };

/**
 * Sessions of operators' browsers. A lookup rejects with GatewayError `rate_limit_exceeded` after too many failures
 * from the address.
 */
interface AdminSessions {
  /**
   * Begins a session of the admin key that the request has, and that the gate has accepted. Throws GatewayError
   * `unauthorized` without a key.
   */
  begin(request: WebRequest): ReturnType<WebSessions['begin']>;
  /**
   * Rejects with GatewayError `unauthorized` without a session, or if the session is over or belongs to another admin
   * key.
   */
  find(request: FromAddress): Promise<WebSession>;
  /** Whose the session is. null for a person without rights, and for a key with roles that is not valid any more. */
  administrator(session: WebSession): Promise<Administrator | null>;
  /** Whether the session alone is enough for a change. */
  mayChange(session: WebSession): boolean;
  /** Rejects like find, and with `permission_denied` for a request from another site. */
  end(request: FromAddress): Promise<void>;
  /**
   * The administrator of the cookie. null without one. A session of a key may only read: a change needs the key itself,
   * because most changes move money or create keys. A person of the company, who has no key, may change something in
   * the 15 minutes after the sign-in. Rejects with GatewayError `unauthorized` if the session is over or
   * the request is a change, and with `permission_denied` for a request from another site.
   */
  passes(request: AdminRequest): Promise<Administrator | null>;
}

interface AdminSessionsOptions extends LookupDeps {
  readonly sessions: Pick<WebSessions, 'begin' | 'known' | 'wasGood' | 'find' | 'end'>;
  readonly cookies: SessionCookies;
  readonly adminKey: string | null;
  readonly adminKeys: Pick<AdminKeys, 'find'>;
  /**
   * The HMAC key for the digest of the admin key in each row. Without it, a reader of the database cannot test guesses
   * of the admin key.
   */
  readonly secret: SealSecret;
  /** The rights of a person of the company by the account. null without any. Default: no person signs in. */
  readonly rolesOf?: (person: string) => Promise<readonly AdminRole[] | null>;
  readonly now: () => number;
}

/** Begins the `keyHash` of a session whose key has roles. The SHA-256 of the key follows. */
const WITH_ROLES = 'roles:';

export function createAdminSessions(options: AdminSessionsOptions): AdminSessions {
  const { sessions, cookies, adminKey, adminKeys, secret, rolesOf = async () => null, now } = options;
  // A new admin key ends all sessions of the old one.
  const keyHashes =
    adminKey === null ? [] : secretsOf(secret).map((key) => createHmac('sha256', key).update(adminKey).digest('hex'));
  const ofThisKey = (session: WebSession | null): WebSession => {
    if (session?.signedInBy === 'person' && session.account === ADMIN) return session;
    if (session?.signedInBy === 'admin_key' && session.keyHash !== null)
      if (session.keyHash.startsWith(WITH_ROLES) || keyHashes.includes(session.keyHash)) return session;
    throw over();
  };
  const find = async (request: FromAddress): Promise<WebSession> => {
    const secret = cookies.read(request, 'admin');
    if (secret === null) throw unauthorized('This request has no session of an operator');
    return findGuarded(options, secret, request.ip, ofThisKey);
  };

  const administrator = async ({ person, keyHash }: WebSession): Promise<Administrator | null> => {
    if (keyHash?.startsWith(WITH_ROLES)) return adminKeys.find(keyHash.slice(WITH_ROLES.length));
    if (person === null) return ROOT;
    const roles = await rolesOf(person);
    return roles === null ? null : { id: person, roles };
  };

  return {
    find,
    administrator,
    mayChange: ({ person, createdAt }) => person !== null && isFresh(createdAt, now()),
    begin({ headers }) {
      // The gate lets the session of a person pass, too.
      const key = bearerOf(headers.authorization ?? '');
      if (key === undefined)
        throw unauthorized('A session begins with an admin key: send "Authorization: Bearer svc-admin-…"');
      const isRoot = adminKey !== null && hashKey(key) === hashKey(adminKey);
      const keyHash = isRoot ? keyHashes[0]! : WITH_ROLES + hashKey(key);
      return sessions.begin({
        account: ADMIN,
        signedInBy: 'admin_key',
        keyHash,
        wallet: null,
        client: headers['user-agent'] ?? '',
      });
    },
    async end(request) {
      const { id } = await find(request);
      cookies.refuseCrossSite(request);
      await sessions.end(id);
    },
    async passes(request) {
      if (request.headers.cookie === undefined || !request.url.startsWith('/admin/')) return null;
      if (cookies.read(request, 'admin') === null) return null;
      cookies.refuseCrossSite(request);
      const session = await find(request);
      const { person, createdAt } = session;
      const caller = await administrator(session);
      if (caller === null) throw person === null ? over() : unauthorized('No group gives you access to this any more');
      if (!isReading(request) && person === null)
        throw unauthorized('A session is not enough for a change: send "Authorization: Bearer svc-admin-…" with it');
      if (!isReading(request) && !isFresh(createdAt, now()))
        throw unauthorized(
          "A change needs a sign-in of the last 15 minutes: sign in with your company's provider again",
        );
      return caller;
    },
  };
}

const over = () => unauthorized('This session is over: sign in with the admin key again');

interface AdminSessionDeps {
  readonly gate: AdminGate;
  /** IP addresses and networks that operators may come from. Empty: all. */
  readonly networks: readonly string[];
  readonly adminSessions: AdminSessions;
  readonly cookies: SessionCookies;
}

const schemaOf = (summary: string, description: string) => ({
  tags: ['Administration'],
  summary,
  description,
  response: {
    200: {
      title: 'AdminSession',
      type: 'object',
      required: ['signed_in', 'administrator', 'changes', 'expires_at'],
      properties: {
        signed_in: { type: 'boolean' },
        administrator: {
          type: ['object', 'null'],
          description: 'Who is signed in. null without a session.',
          required: ['id', 'roles'],
          properties: {
            id: {
              type: 'string',
              description: '`root` for the admin key, the id of a key with roles, or the account of the person.',
            },
            label: { type: 'string', description: 'The name of a key with roles. Others have none.' },
            roles: { type: ['array', 'null'], items: { type: 'string' }, description: 'null: every right.' },
          },
        },
        changes: {
          type: 'boolean',
          description:
            'Whether the session alone is enough for changes that its rights cover: for 15 minutes after a sign-in at the provider of the company.',
        },
        expires_at: { type: ['string', 'null'], description: 'RFC 3339; null without a session.' },
      },
    },
  },
});
const NOBODY = { signed_in: false, administrator: null, changes: false, expires_at: null };

/** Sign-in of an operator's browser. Register it under `/admin/v1`. */
export function adminSessionRoutes({ gate, networks, adminSessions, cookies }: AdminSessionDeps): FastifyPluginAsync {
  const inside = createNetworkGate(networks);
  const onRequest = async ({ ip }: FastifyRequest) => inside(ip);
  const refuseWrongKey = async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.headers.authorization !== undefined) await gate(request, reply);
  };
  return async (app) => {
    const begin = schemaOf(
      'Sign an operator in',
      'Begins a session of the admin key, or of an admin key with roles, and sets its cookie. The session reads what the key reads, and ends with it. What changes something needs the key itself. Send the header `x-tollgate-web: 1`.',
    );
    const config = { adminRole: 'read' as const };
    const secured = { schema: { ...begin, security: [{ bearer: [] }] }, onRequest: gate, config };
    app.post('/session', secured, async (request, reply) => {
      cookies.refuseCrossSite(request);
      cookies.refuseUnkept(request);
      const { secret, session } = await adminSessions.begin(request);
      const maxAgeS = Math.floor((session.expiresAt - session.createdAt) / 1_000);
      void reply
        .header('set-cookie', cookies.write(request, 'admin', secret, maxAgeS))
        .header('cache-control', 'no-store');
      return {
        signed_in: true,
        administrator: await adminSessions.administrator(session),
        changes: false,
        expires_at: new Date(session.expiresAt).toISOString(),
      };
    });

    const show = schemaOf('Show the operator session', 'Without a session `signed_in` is false: that is no error.');
    app.get('/session', { schema: { ...show, security: [] }, onRequest }, async (request, reply) => {
      void reply.header('cache-control', 'no-store');
      const session = await adminSessions.find(request).catch(passOver);
      const administrator = session && (await adminSessions.administrator(session));
      return session && administrator
        ? {
            signed_in: true,
            administrator,
            changes: adminSessions.mayChange(session),
            expires_at: new Date(session.expiresAt).toISOString(),
          }
        : NOBODY;
    });

    const end = schemaOf('Sign an operator out', 'Ends the session of the cookie.');
    // If the request also has a key, the key must be valid, as on every route. A wrong key is refused before the body
    // is read.
    const routeOptions = { schema: { ...end, security: [] }, onRequest: [onRequest, refuseWrongKey] };
    app.delete('/session', routeOptions, async (request, reply) => {
      void reply.header('set-cookie', cookies.remove(request, 'admin')).header('cache-control', 'no-store');
      // If the session is over, the operator is signed out already.
      await adminSessions.end(request).catch(passOver);
      return NOBODY;
    });
  };
}

/** Ignores the error of a missing or ended session. Throws every other error. */
function passOver(error: unknown): null {
  if (error instanceof GatewayError && error.code === 'unauthorized') return null;
  throw error;
}
