import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { isObject } from '#wire';
import { anonymousAt, type Caller } from '#accounts';
import { addressOf, readBytes, toGatewayError, toHttpError } from '#http';
import { type Attempts, DPOP_ALGORITHMS, OWN_SCOPE } from '#auth';
import type { Pipeline } from '#call';
import type { Config } from '#config';
import { type ClientSecretKeys, clientSecretOf, SECRET_KEY } from './adapter.ts';
import { type AuthorizationServer, over } from './authorization-server.ts';
import { CLIENT_AUTH_METHODS, readClientMetadata } from './clients.ts';
import { describeError } from './error-descriptions.ts';
import { ERROR_PAGE_HEADERS, errorPage } from './error-page.ts';
import { authorizationUrl } from './library-request.ts';
import type { StateStore } from './state-store.ts';

interface AuthorizationRoutesDeps {
  readonly authorization: AuthorizationServer;
  readonly config: Config['authorization'];
  readonly state: Pick<StateStore, 'begin'>;
  readonly clientSecrets: ClientSecretKeys;
  /** Counts wrong codes and tokens by network. They are not those of API keys. */
  readonly attempts: Attempts;
  readonly count: Pipeline['count'];
  readonly now: () => number;
}

const REGISTER = '/oauth/register';
/** A registration that nobody allowed anything ends after this time. */
const REGISTERED_MS = 24 * 60 * 60_000;
const METADATA = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];

/** The endpoints of the authorization server. Register it without a prefix. */
export function authorizationRoutes(deps: AuthorizationRoutesDeps): FastifyPluginAsync {
  const { authorization, attempts, count } = deps;

  const answer = async (request: FastifyRequest, reply: FastifyReply, url?: string): Promise<number> => {
    const body = Buffer.isBuffer(request.body) ? request.body : null;
    await authorization.ready();
    reply.hijack();
    reply.raw.setHeader('x-request-id', request.id);
    const address = addressOf(request);
    return authorization.answer({ request: request.raw, response: reply.raw }, { body, url, address });
  };

  return async (app) => {
    app.addContentTypeParser('application/x-www-form-urlencoded', readBytes(1));
    app.setErrorHandler(answerError);

    app.get('/oauth/authorize', { schema: HIDDEN }, async (request, reply) => {
      await count(visitorAt(request, 'begins to sign in'), 1);
      await answer(request, reply, authorizationUrl(request.url));
    });
    app.get<GoingOn>('/oauth/authorize/:id', { schema: HIDDEN }, async (request, reply) => {
      if (!authorization.hasAnswered(request.params.id, String(request.query.mark))) throw over();
      await answer(request, reply);
    });
    app.get('/oauth/jwks', FOR_ANY_PAGE, async (request, reply) => {
      await answer(request, reply);
    });
    for (const path of ['/oauth/token', '/oauth/revoke'])
      app.post(path, FOR_ANY_PAGE, async (request, reply) => {
        await attempts
          .check(addressOf(request), async () => {
            const status = await answer(request, reply);
            if (status === 400 || status === 401) throw new WrongToken();
          })
          .catch((error: unknown) => {
            // The library has answered.
            if (!(error instanceof WrongToken)) throw error;
          });
      });
    addMetadata(app, deps);
    if (deps.config.registration) addRegistration(app, deps);
  };
}

/** Clients find these routes in the metadata, and their forms are those of the RFCs. */
const HIDDEN = { hide: true };
/** No cookie counts at these, so clients in pages of every origin may use them. */
const FOR_ANY_PAGE = { schema: HIDDEN, config: { anyPage: true } } as const;

interface GoingOn {
  readonly Params: { readonly id: string };
  readonly Querystring: { readonly mark?: string };
}

/** Counts as a failed attempt, after the answer. */
class WrongToken extends GatewayError {
  constructor() {
    super('unauthorized', 'A code or token was wrong');
  }
}

/** A caller to count what has no account yet. Each kind of request has its own rate. */
function visitorAt(request: FastifyRequest, what: string): Caller {
  const stranger = anonymousAt(addressOf(request));
  return { ...stranger, anonymous: { from: `${stranger.anonymous!.from} ${what}` } };
}

/** Errors before the library, in the form of RFC 6749 section 5.2, and to a browser as a page. */
function answerError(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const known = toGatewayError(error);
  if (reply.sent) {
    request.raw.socket.destroy();
    return;
  }
  const { status, headers } = toHttpError(known);
  const code = codeOf(status, request.routeOptions.url);
  void reply.code(status).headers({ ...headers, 'cache-control': 'no-store' });
  if (request.headers.accept?.includes('text/html') !== true)
    void reply.send({ error: code, error_description: known.message });
  else void reply.headers(ERROR_PAGE_HEADERS).send(errorPage(code, known.message));
}

function codeOf(status: number, path: string | undefined): string {
  if (status === 429 || status === 503) return 'temporarily_unavailable';
  if (status >= 500) return 'server_error';
  return path === REGISTER ? 'invalid_client_metadata' : 'invalid_request';
}

function addMetadata(app: FastifyInstance, { authorization, config }: AuthorizationRoutesDeps): void {
  for (const path of METADATA) {
    app.get(path, FOR_ANY_PAGE, (_request, reply) => {
      const issuer = authorization.issuer();
      if (issuer === null) return reply.callNotFound();
      return reply.header('cache-control', 'public, max-age=300').send(metadataOf(issuer, config));
    });
  }
}

/** RFC 8414, with what OpenID Connect Discovery requires, because clients look at both addresses. */
const metadataOf = (issuer: string, { registration, clientDocuments }: Config['authorization']) => ({
  issuer,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  revocation_endpoint: `${issuer}/oauth/revoke`,
  jwks_uri: `${issuer}/oauth/jwks`,
  ...(registration ? { registration_endpoint: issuer + REGISTER } : {}),
  scopes_supported: [OWN_SCOPE],
  response_types_supported: ['code'],
  response_modes_supported: ['query', 'fragment', 'form_post'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  token_endpoint_auth_signing_alg_values_supported: ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'],
  revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: clientDocuments,
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
});

/** Clients that have no document register themselves (RFC 7591). */
function addRegistration(app: FastifyInstance, deps: AuthorizationRoutesDeps): void {
  const { authorization, state, clientSecrets, count, now } = deps;
  app.post(REGISTER, FOR_ANY_PAGE, async (request, reply) => {
    await count(visitorAt(request, 'registers'), 1);
    if (!isObject(request.body))
      throw new GatewayError('invalid_request', 'The description of a client must be a JSON object');
    const metadata = readClientMetadata(request.body, { secrets: true, issuer: authorization.issuer() ?? '' });
    try {
      await authorization.judge({ ...metadata, ...(needsSecret(metadata) ? { client_secret: 'judged' } : {}) });
    } catch (error) {
      const { error: code, error_description: description } = error as {
        readonly error?: string;
        readonly error_description?: string;
      };
      if (code === undefined) throw error;
      const described = describeError({ error: code, description, issuer: authorization.issuer() ?? '' });
      return reply.header('cache-control', 'no-store').code(400).send({ error: code, error_description: described });
    }
    const id = randomBytes(24).toString('base64url');
    const client = { client_id: id, client_id_issued_at: Math.floor(now() / 1_000), ...metadata };
    const payload = { ...client, ...(needsSecret(metadata) ? { [SECRET_KEY]: clientSecrets.id } : {}) };
    const row = { kind: 'Client', id, payload, grantKey: null, expiresAt: now() + REGISTERED_MS };
    if (!(await state.begin(row, addressOf(request))))
      throw new GatewayError(
        'rate_limit_exceeded',
        'Too many clients from your network have registered and were not used: try again later, or use a client with a document of its own',
        { retryAfterS: 60 * 60 },
      );
    const secret = needsSecret(metadata)
      ? {
          client_secret: clientSecretOf(id, clientSecrets.key(clientSecrets.id)),
          client_secret_expires_at: 0,
        }
      : {};
    return reply
      .header('cache-control', 'no-store')
      .code(201)
      .send({ ...client, ...secret });
  });
}

const needsSecret = ({ token_endpoint_auth_method: method }: Readonly<Record<string, unknown>>): boolean =>
  String(method).startsWith('client_secret_');
