import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import { type AdminGate, createNetworkGate } from '../admin-gate.ts';
import type { AdminSessions } from './admin-sessions.ts';
import type { SessionCookies } from './session-cookie.ts';

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
      required: ['signed_in', 'expires_at'],
      properties: {
        signed_in: { type: 'boolean' },
        expires_at: { type: ['string', 'null'], description: 'RFC 3339; null without a session.' },
      },
    },
  },
});
const NOBODY = { signed_in: false, expires_at: null };

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
      'Begins a session of the admin key, and sets its cookie. The session reads what the admin key reads. What changes something needs the key itself. Send the header `x-tollgate-web: 1`.',
    );
    const secured = { schema: { ...begin, security: [{ bearer: [] }] }, onRequest: gate };
    app.post('/session', secured, async (request, reply) => {
      cookies.refuseCrossSite(request);
      cookies.refuseUnkept(request);
      const { secret, session } = await adminSessions.begin(request);
      const maxAgeS = Math.floor((session.expiresAt - session.createdAt) / 1_000);
      void reply
        .header('set-cookie', cookies.write(request, 'admin', secret, maxAgeS))
        .header('cache-control', 'no-store');
      return { signed_in: true, expires_at: new Date(session.expiresAt).toISOString() };
    });

    const show = schemaOf('Show the operator session', 'Without a session `signed_in` is false: that is no error.');
    app.get('/session', { schema: { ...show, security: [] }, onRequest }, async (request, reply) => {
      void reply.header('cache-control', 'no-store');
      const found = await adminSessions.find(request).catch(passOver);
      return found ? { signed_in: true, expires_at: new Date(found.expiresAt).toISOString() } : NOBODY;
    });

    const end = schemaOf('Sign an operator out', 'Ends the session of the cookie.');
    // If the request also has a key, the key must be valid, as on every route. A wrong key is refused before the body
    // is read.
    const kept = { schema: { ...end, security: [] }, onRequest: [onRequest, refuseWrongKey] };
    app.delete('/session', kept, async (request, reply) => {
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
