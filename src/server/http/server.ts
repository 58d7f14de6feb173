import { Readable } from 'node:stream';
import { Socket } from 'node:net';
import type { ValidateFunction } from 'ajv';
import Fastify, {
  type FastifyContentTypeParser,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { CREDENTIAL_HEADERS, type Trust, type OwnOrigin } from '#security';
import { type GatewayError, isOfProvider } from '#errors';
import { parseJson } from '#wire';
import type { LimitsConfig } from '#config';
import { answerClientError, requestIdOf } from './http-server.ts';
import { dialectOf, toHttpError } from './error-table.ts';
import { compileOnce } from './schemas.ts';
import { createChunkBudgets } from './body-chunks.ts';
import { allowAnyPage } from './cors.ts';
import { answerBeforeTheBody, countChunks, refusePipelines } from './connections.ts';
import { addRequestBodies, readBytes } from './request-bodies.ts';
import { type BodyRefusal, PARSED_JSON } from './body-memory.ts';
import { addOwnOrigin, hasCredentials } from './request-context.ts';
import { bodyTypesOf, toGatewayError } from './errors.ts';
import { rewrittenAddress } from './rewritten-address.ts';
import { shareConnections } from './connection-places.ts';
import { refuseUnknownRoutes } from './unknown-routes.ts';
import { asksForUpgrade } from './upgrades.ts';

export interface ServerOptions {
  /** The proxies whose X-Forwarded-For is trusted; default none. */
  readonly trust?: Trust;
  readonly limits: LimitsConfig;
  /** Default: the server knows no names of itself. */
  readonly ownOrigin?: OwnOrigin;
  /** Called for each body that is refused because there is no memory for it, or because it is too slow. */
  readonly onBodyRefused?: (why: BodyRefusal) => void;
  /**
   * Called for every error that becomes a 5xx, with its cause. Not called for errors of providers, because the log of
   * calls has them.
   */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
  /**
   * The form of an error for a request that no route answers in a form of its own; null for that of the chat API.
   * Default: always null.
   */
  readonly formOf?: (request: FastifyRequest) => ErrorForm | null;
  /** The value of `WWW-Authenticate` for an error. null, the default: the one of the error itself. */
  readonly challenge?: (request: FastifyRequest, error: GatewayError) => string | null;
}

type ErrorForm = (
  error: GatewayError,
  request: Pick<FastifyRequest, 'id' | 'headers' | 'originalUrl'>,
) => { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown };

// Bodies are validated without conversion. In addresses, texts are converted to numbers and booleans. Schemas are not
// checked at run time, because a test checks them, and compiling the schema of schemas takes longer than everything
// else that a command compiles.
const common = { strictSchema: false, validateSchema: false, meta: false, verbose: true } as const;
const compileStrict = compileOnce({ ...common, coerceTypes: false });
const compileCoercing = compileOnce({ ...common, coerceTypes: 'array', useDefaults: true });
/**
 * A parameter that is not known is refused: a filter with a typing error would answer with everything. The schema of a
 * route of another vendor's API has `additionalProperties: true`, because clients send what only the vendor knows.
 */
const closed = (schema: object, part: string | undefined): object =>
  part === 'querystring' ? { additionalProperties: false, ...schema } : schema;

/**
 * Replaces the framework's own compilers, which would be loaded without use: the server sets other compilers before its
 * first route.
 */
const NO_COMPILERS = { compilersFactory: { buildValidator: missing, buildSerializer: missing } } as const;

function missing(): never {
  throw new Error('A route was added before the compilers of schemas were set');
}

/**
 * The HTTP server for all protocols: body and time limits, request ids, and the error format of the chat API for every
 * route without its own format.
 */
export function createServer({
  trust,
  limits,
  ownOrigin,
  onBodyRefused = () => {},
  onError,
  formOf = () => null,
  challenge = () => null,
}: ServerOptions): FastifyInstance {
  const server: FastifyInstance = Fastify({
    logger: false,
    schemaController: NO_COMPILERS,
    ...(trust ? { trustProxy: trust } : {}),
    bodyLimit: limits.bodyBytesMax,
    // How long a body may take depends on its size, see request-bodies.ts.
    requestTimeout: 0,
    connectionTimeout: 0,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    // Requests with an invalid address never reach the hooks and the error handler below.
    frameworkErrors: (error, request, reply) => {
      const http = toHttpError(toGatewayError(error), dialectOf(request));
      void (reply as FastifyReply)
        .code(http.status)
        .headers({ ...http.headers, 'x-request-id': request.id })
        .send(http.body);
    },
    genReqId: (request) => requestIdOf(request.headers),
    requestIdHeader: false,
    rewriteUrl: rewrittenAddress,
    exposeHeadRoutes: true,
    // The router would answer longer ones in its own words, and before the key is checked: see hasTooLongName.
    routerOptions: { maxParamLength: HEADER_BYTES, ignoreTrailingSlash: false },
    http: {
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: Math.min(limits.requestTimeoutMs, 20_000),
      connectionsCheckingInterval: 5_000,
      shouldUpgradeCallback: (request) => asksForUpgrade(server.server, request),
    },
  });

  namePlugins(server);
  addOwnOrigin(server, ownOrigin);
  allowAnyPage(server);

  // Compiled at a route's first request. Most routes of a process never get one, and compiling all schemas would take
  // most of the start.
  server.setValidatorCompiler(({ schema, httpPart }) => {
    let compiled: ValidateFunction | null = null;
    const validate: ((data: unknown) => boolean) & Partial<Pick<ValidateFunction, 'errors'>> = (data) => {
      compiled ??= httpPart === 'body' ? compileStrict(schema) : compileCoercing(closed(schema, httpPart));
      const valid = compiled(data);
      validate.errors = compiled.errors ?? null;
      return valid && (httpPart === 'body' || numbersAreExact(data, validate));
    };
    return validate;
  });

  // The schema of an answer is only its documentation. It must not remove fields.
  server.setSerializerCompiler(() => JSON.stringify);

  server.removeAllContentTypeParsers();
  const bodies = addRequestBodies(server, limits, onBodyRefused);
  const readJsonBytes = readBytes(PARSED_JSON);
  const parseBody: FastifyContentTypeParser = (request, payload, done) =>
    readJsonBytes(request, payload, (failed, body = NOTHING) => {
      if (failed !== null) return done(failed);
      let value: unknown;
      try {
        value = body.byteLength === 0 ? undefined : parseJson(body, limits);
      } catch (error) {
        return done(error as Error);
      }
      done(null, value);
    });
  server.addContentTypeParser('application/json', parseBody);
  server.addContentTypeParser(/^application\/[\w.-]+\+json(;|$)/, parseBody);

  const chunks = createChunkBudgets();
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    countChunks(request, chunks);
    done();
  });

  shareConnections(server.server, limits.connectionsMax, trust, chunks);
  refusePipelines(server);
  const refuseUnknown = refuseUnknownRoutes(server);
  const refuseTooLarge = answerBeforeTheBody(server, limits);
  // One hook for all checks before a body is read, because each hook costs time in every request.
  server.addHook('preParsing', (request, reply, payload, done) => {
    try {
      if (refuseUnknown(request, reply)) return;
      refuseTooLarge(request);
      bodies.expect(request, reply);
    } catch (error) {
      return done(error as Error);
    }
    done(null, payload);
  });
  // A page that its client does not read must not stay in memory for ever: it may be the last reference to an old
  // version of its bytes. Replies of calls do not pass here and have their own timeout.
  server.addHook('onSend', (request, reply, payload, done) => {
    keepFromCaches(request, reply);
    const { socket } = request.raw;
    // A request from inside this process has no real socket.
    if (sizeOf(payload) > SMALL_PAGE_BYTES && socket instanceof Socket) socket.setTimeout(limits.clientStallMs);
    done();
  });

  server.setErrorHandler((error: FastifyError | GatewayError, request, reply) => {
    const known = toGatewayError(error, bodyTypesOf(request));
    const http = formOf(request)?.(known, request) ?? toHttpError(known, dialectOf(request));
    if (http.status >= 500 && !isOfProvider(known.code))
      onError(known.code === 'internal' ? error : (known.cause ?? known), request);
    void reply.code(http.status).headers(http.headers);
    const authenticate = known.headers?.['www-authenticate'] === undefined ? null : challenge(request, known);
    if (authenticate !== null) void reply.header('www-authenticate', authenticate);
    void reply.send(http.body);
  });

  return server;
}

/**
 * An answer whose route names no cache is that of its credential. HTTP protects only answers to `Authorization`, and
 * not those to the other headers with credentials or to cookies, from shared caches (RFC 9111, section 3.5).
 */
function keepFromCaches(request: FastifyRequest, reply: FastifyReply): void {
  if (reply.hasHeader('cache-control')) return;
  if (hasCredentials(request.headers)) void reply.header('cache-control', 'private, no-store');
  const vary = reply.getHeader('vary');
  void reply.header('vary', vary === undefined ? BY_CREDENTIAL : `${String(vary)}, ${BY_CREDENTIAL}`);
}

const BY_CREDENTIAL = [...CREDENTIAL_HEADERS, 'cookie', 'x-tollgate-account'].join(', ');

/**
 * Whether the numbers that the validator made of texts in an address are those texts. Ajv takes `1e400` for an infinite
 * number, which it compares with no bound, and no database counts to it or to 2^53 + 1.
 */
function numbersAreExact(data: unknown, validate: Partial<Pick<ValidateFunction, 'errors'>>): boolean {
  for (const [name, value] of Object.entries(data as Readonly<Record<string, unknown>>)) {
    if (typeof value !== 'number' || Math.abs(value) <= Number.MAX_SAFE_INTEGER) continue;
    const comparison = value > 0 ? '<=' : '>=';
    const params = { comparison, limit: Math.sign(value) * Number.MAX_SAFE_INTEGER };
    const keyword = value > 0 ? 'maximum' : 'minimum';
    validate.errors = [{ keyword, instancePath: `/${name}`, schemaPath: '', params, parentSchema: {}, data: value }];
    return false;
  }
  return true;
}

/** The most bytes of a request's headers, and so of its address. */
const HEADER_BYTES = 32 * 1024;

const NOTHING = Buffer.alloc(0);

/** A page up to this size fits in the send buffer of a connection. */
const SMALL_PAGE_BYTES = 64 * 1024;

/** Size of a page in bytes, or for a text its length, which is not more. That of a stream is not known. */
const sizeOf = (payload: unknown): number => {
  if (typeof payload === 'string') return payload.length;
  if (Buffer.isBuffer(payload)) return payload.byteLength;
  return payload instanceof Readable ? Infinity : 0;
};

const NAME = Symbol.for('fastify.display-name');

type Register = (this: unknown, plugin: object, options?: object) => unknown;

/**
 * Gives a name to every plugin of the server that has no name. Otherwise the framework searches the exports of all
 * loaded modules for a name. The symbol is documented. That the server of a plugin inherits this `register` is not:
 * test/server/http/plugins-have-names.test.ts has the version with which it was checked.
 */
function namePlugins(server: FastifyInstance): void {
  const register = server.register as unknown as Register;
  const wrapped: Register = function (plugin, options) {
    const { [NAME]: pluginName, name } = plugin as { readonly [NAME]?: string; readonly name?: string };
    if (pluginName === undefined && Object.isExtensible(plugin)) Object.assign(plugin, { [NAME]: name || 'routes' });
    return register.call(this, plugin, options);
  };
  Object.assign(server, { register: wrapped });
}
