import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { isDevelopment } from '#accounts';
import { requireAdmission } from '#auth';
import { requireFreshSignature, requireFullRights } from '#auth/keys';
import { type AuthorizationServer, GRANT_DAYS_MAX, type SignInRequest } from '#authorization';
import type { Pipeline } from '#call';
import { dataOf, objectOf, titled } from '../route-schemas.ts';
import { createKey, type KeyBody, newKeyBodySchema, parseKeyBody } from './keys.ts';
import type { OwnKeysDeps } from './key-routes.ts';

/** Refuses requests that another site made a browser send. `SessionCookies` has it. */
interface OwnPages {
  refuseCrossSite(request: FastifyRequest): void;
}

interface SignInRequestsDeps extends OwnKeysDeps {
  readonly authorization: AuthorizationServer;
  readonly admit: Pipeline['admit'];
  readonly cookies: OwnPages;
}

const PATH = '/authorize/:id/request';
const tags = ['Account'];
const params = objectOf({
  id: { type: 'string', maxLength: 64, description: 'The sign-in, of which the browser has a cookie.' },
});

const requestSchema = dataOf(
  titled(
    'SignInRequest',
    objectOf({
      name: { type: ['string', 'null'], description: 'What the program calls itself. Nobody has checked it.' },
      document: {
        type: ['string', 'null'],
        description:
          'The address of the document of the program, whose host vouches for it; null for a program that registered itself.',
      },
      sends_to: {
        type: ['string', 'null'],
        description: 'The host that gets the answer; null for a program on the machine of the browser.',
      },
      link: {
        type: ['string', 'null'],
        description:
          'The scheme of the link that opens the program on the machine of the browser, such as `cursor:`; null for one that listens on loopback, and for a host.',
      },
      resources: {
        type: 'array',
        items: { type: 'string' },
        description: 'Addresses of this gateway that it wants to call.',
      },
      expires_at: { type: 'string', description: 'Until when it waits for an answer.' },
    }),
  ),
);
const answeredSchema = objectOf({ redirect_to: { type: 'string', description: 'Where the browser goes on.' } });

/**
 * The question to a person when a program wants to sign in by OAuth, and the answers. Each sign-in belongs to the
 * browser that began it, which has a cookie for its path. Register it without a prefix.
 */
export function signInRequestRoutes(deps: SignInRequestsDeps): FastifyPluginAsync {
  return async (app) => {
    showRequest(app, deps);
    refuseRequest(app, deps);
    await app.register(async (own) => allowRequest(own, deps));
  };
}

const exchangeOf = (request: FastifyRequest, reply: FastifyReply) => ({ request: request.raw, response: reply.raw });

function showRequest(app: FastifyInstance, { authorization, cookies }: SignInRequestsDeps): void {
  const schema = {
    summary: 'Show who wants to sign in',
    description:
      'The program that sent this browser here, and what it wants to call. Only the browser that began the sign-in sees it.',
    tags,
    security: [],
    params,
    response: { 200: requestSchema },
  };
  app.get(PATH, { schema }, async (request, reply) => {
    cookies.refuseCrossSite(request);
    void reply.header('cache-control', 'no-store');
    return { data: viewOf(await authorization.requested(exchangeOf(request, reply))) };
  });
}

const viewOf = ({ client, resources, expiresAt }: SignInRequest) => ({
  name: client.name,
  document: client.document,
  sends_to: client.sendsTo,
  link: client.link,
  resources,
  expires_at: new Date(expiresAt).toISOString(),
});

function refuseRequest(app: FastifyInstance, { authorization, cookies }: SignInRequestsDeps): void {
  const schema = {
    summary: 'Refuse a sign-in',
    description: 'Tells the program that the person said no.',
    tags,
    security: [],
    params,
    response: { 200: answeredSchema },
  };
  app.delete(PATH, { schema }, async (request, reply) => {
    cookies.refuseCrossSite(request);
    return { redirect_to: await authorization.refuse(exchangeOf(request, reply)) };
  });
}

const OF_PROGRAMS = { what: 'let a program sign in', instead: 'sign in with a wallet or an API key' };
const DAY_MS = 24 * 60 * 60_000;

function allowRequest(app: FastifyInstance, deps: SignInRequestsDeps): void {
  const { authorization, cookies, keys, nonces, now } = deps;
  const admissionOf = requireAdmission(app, deps.admit);
  const schema = {
    summary: 'Let a program sign in',
    description: `The program gets a key that nobody sees, with these limits. A budget and an end, at most ${GRANT_DAYS_MAX} days from now, are required. It needs the same proof as a new key.`,
    tags,
    params,
    body: newKeyBodySchema('SignInConsent', { limit: 5, limit_reset: 'monthly', expires_at: '2030-01-31T00:00:00Z' }),
    response: { 200: answeredSchema },
  };
  app.post<{ Body: KeyBody }>(PATH, { config: { actsAs: 'member' }, schema }, async (request, reply) => {
    const { caller } = admissionOf(request);
    cookies.refuseCrossSite(request);
    await requireFullRights(keys, caller, OF_PROGRAMS);
    const { client } = await authorization.requested(exchangeOf(request, reply));
    const expiresAt = endOf(parseKeyBody(request.body, now()), now());
    await deps.countNewKey(caller);
    await requireFreshSignature(caller, nonces);
    const body = { name: client.name ?? 'a program without a name', ...request.body };
    const { data: key } = await createKey(deps, caller.account, isDevelopment(caller) ? 'development' : 'live', body, {
      member: caller.member?.account ?? null,
      client: originOf(client),
      setter: 'account',
      maker: caller,
    });
    const grant = { account: caller.account, hash: key.hash, expiresAt };
    return { redirect_to: await authorization.allow(exchangeOf(request, reply), grant) };
  });
}

/** The end of a consent. Throws GatewayError `invalid_request` without an end or a budget that refuses calls. */
function endOf({ limit, limitSoft, expiresAt }: ReturnType<typeof parseKeyBody>, at: number): number {
  if (limit == null)
    throw new GatewayError('invalid_request', 'limit must be the most that the program may spend, in USD', {
      param: 'limit',
    });
  if (limitSoft === true)
    throw new GatewayError('invalid_request', 'limit_soft cannot be true: the budget of a program refuses calls', {
      param: 'limit_soft',
    });
  if (expiresAt == null || expiresAt > at + GRANT_DAYS_MAX * DAY_MS)
    throw new GatewayError('invalid_request', `expires_at must be at most ${GRANT_DAYS_MAX} days from now`, {
      param: 'expires_at',
    });
  return expiresAt;
}

/** The origin that is shown of the program later: the host that vouches for it, or the one that gets the answers. */
function originOf({ document, sendsTo }: SignInRequest['client']): string {
  if (document !== null) return new URL(document).origin;
  return sendsTo === null ? 'a program on your machine' : `https://${sendsTo}`;
}
