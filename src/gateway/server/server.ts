import { Socket } from 'node:net';
import type { ValidateFunction } from 'ajv';
import Fastify, {
  type FastifyContentTypeParser,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { DatabaseError } from '#store';
import {
  type Trust,
  answerClientError,
  dialectOf,
  GatewayError,
  isOfProvider,
  toHttpError,
  parseJson,
  requestIdOf,
  asksForTunnel,
  type OwnOrigin,
  STRICT_PREFIX,
} from '#wire';
import { LedgerUnavailable } from '#billing';
import type { LimitsConfig } from '#config';
import { compileOnce } from './compile-once.ts';
import { collectMethods } from './methods-of-paths.ts';
import { answerBeforeTheBody } from './drain-before-close.ts';
import { missingEndpoint } from './missing-endpoint.ts';
import { namePlugins } from './name-plugins.ts';
import { refusePipelines } from './refuse-pipelines.ts';
import { addRequestBodies, readBytes } from './request-bodies.ts';
import { type BodyRefusal, PARSED_JSON } from './body-memory.ts';
import { schemaError } from './schema-problem.ts';
import { addOwnOrigin } from './shown-address.ts';

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
}

/** Writes an error in the form of an API. `id`: of the request. */
type ErrorForm = (
  error: GatewayError,
  request: { readonly id: string },
) => { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: object };

// Bodies are validated without conversion. In addresses, texts are converted to numbers and booleans. Schemas are not
// checked at run time, because a test checks them, and compiling the schema of schemas takes longer than everything
// else that a command compiles.
const common = { strictSchema: false, validateSchema: false, meta: false, verbose: true } as const;
const compileStrict = compileOnce({ ...common, coerceTypes: false });
const compileCoercing = compileOnce({ ...common, coerceTypes: 'array', useDefaults: true });

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
    // Clients of OpenAI's API reach the same endpoints, in their dialect.
    rewriteUrl: ({ url = '/' }) => (url.startsWith(STRICT_PREFIX) ? `/api${url}` : url),
    exposeHeadRoutes: true,
    // The router would answer longer ones in its own words, and before the key is checked: see hasTooLongName.
    routerOptions: { maxParamLength: HEADER_BYTES, ignoreTrailingSlash: false },
    http: {
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: Math.min(limits.requestTimeoutMs, 20_000),
      connectionsCheckingInterval: 5_000,
      shouldUpgradeCallback: (request) => server.server.listenerCount('upgrade') > 0 && asksForTunnel(request),
    },
  });

  namePlugins(server);
  addOwnOrigin(server, ownOrigin);

  // Compiled at a route's first request. Most routes of a process never get one, and compiling all schemas would take
  // most of the start.
  server.setValidatorCompiler(({ schema, httpPart }) => {
    let compiled: ValidateFunction | null = null;
    const validate: ((data: unknown) => boolean) & Partial<Pick<ValidateFunction, 'errors'>> = (data) => {
      compiled ??= (httpPart === 'body' ? compileStrict : compileCoercing)(schema);
      const valid = compiled(data);
      validate.errors = compiled.errors ?? null;
      return valid;
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

  server.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    done();
  });

  refusePipelines(server);
  const refuseUnknown = refuseUnknownRoutes(server);
  const refuseTooLarge = answerBeforeTheBody(server, limits);
  // One hook for all checks before a body is read, because each hook costs time in every request.
  server.addHook('preParsing', (request, reply, payload, done) => {
    try {
      if (request.is404 || lacksItsName(request) || isForVisits(request)) return void refuseUnknown(request, reply);
      if (hasTooLongName(request)) throw nameTooLong();
      refuseTooLarge(request);
      bodies.expect(request, reply);
    } catch (error) {
      return done(error as Error);
    }
    done(null, payload);
  });
  // A page that its client does not read must not stay in memory for ever: it may be the last reference to an old
  // version of its bytes. Replies of calls do not pass here and have their own timeout.
  server.addHook('onSend', (request, _reply, payload, done) => {
    const { socket } = request.raw;
    // A request from inside this process has no real socket.
    if (sizeOf(payload) > SMALL_PAGE_BYTES && socket instanceof Socket) socket.setTimeout(limits.clientStallMs);
    done();
  });

  server.setErrorHandler((error: FastifyError | GatewayError, request, reply) => {
    const known = toGatewayError(error);
    const http = formOf(request)?.(known, request) ?? toHttpError(known, dialectOf(request));
    if (http.status >= 500 && !isOfProvider(known.code))
      onError(known.code === 'internal' ? error : (known.cause ?? known), request);
    void reply.code(http.status).headers(http.headers).send(http.body);
  });

  return server;
}

/**
 * Answers requests without a route. The returned function sends the answer or throws its error. Call it before the body
 * is read, because nothing else would read the body, and after the hooks that set the common response headers.
 */
function refuseUnknownRoutes(server: FastifyInstance): (request: FastifyRequest, reply: FastifyReply) => unknown {
  const methodsOf = collectMethods(server);
  const refuse = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?')[0]!;
    const { methods, refusal } = methodsOf(path);
    const tell = (error: GatewayError) => {
      if (refusal === null) throw error;
      const { status, headers, text } = refusal(error, request);
      return reply.code(status).headers(headers).type('application/json').send(text);
    };
    if (methods.length === 0 || methods.includes(request.method)) {
      const page = isVisit(request, path) ? missingPages.get(server) : undefined;
      if (page) return page(request, reply).catch((error: unknown) => void reply.send(error));
      const words = missingEndpoint(request.method, path, (other) => methodsOf(other).methods.length > 0);
      return tell(new GatewayError('not_found', asAsked(words, request)));
    }
    const allow = methods.join(', ');
    if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow).send();
    return tell(
      new GatewayError(
        'method_not_allowed',
        asAsked(`${path.slice(0, 200)} does not take ${request.method}. It takes ${allow}`, request),
        { headers: { allow } },
      ),
    );
  };
  server.setNotFoundHandler(refuse);
  return refuse;
}

/** Words with addresses below `/v1`, for a client that asked there: it would meet another dialect below `/api/v1`. */
const asAsked = (words: string, request: FastifyRequest): string =>
  dialectOf(request) === 'openai' ? words.replaceAll(' /api/v1/', ' /v1/').replace(/^\/api\/v1\//, '/v1/') : words;

/**
 * Whether a path ends with a slash, although its route continues with a name: `/api/v1/models/`. The router takes it
 * for an empty name. MCP and A2A addresses may end with a slash.
 */
function lacksItsName({ url, routeOptions }: FastifyRequest): boolean {
  const query = url.indexOf('?');
  if (url.charCodeAt((query === -1 ? url.length : query) - 1) !== SLASH) return false;
  return OF_NAMES.test(url) && /[:*][^/]*$/.test(routeOptions.url ?? '');
}

const isForVisits = (request: FastifyRequest): boolean =>
  request.routeOptions.config.visitsOnly === true && !isVisit(request, request.url);

/** The most bytes of a request's headers, and so of its address. */
const HEADER_BYTES = 32 * 1024;

/** The longest name or id in a path. Wildcards, which hold whole paths, may be longer. */
const NAME_CHARS_MAX = 512;

function hasTooLongName({ url, params }: FastifyRequest): boolean {
  if (url.length <= NAME_CHARS_MAX) return false;
  const named = Object.entries((params ?? {}) as Readonly<Record<string, string>>);
  return named.some(([name, value]) => name !== '*' && value.length > NAME_CHARS_MAX);
}

const nameTooLong = () =>
  new GatewayError(
    'not_found',
    `Not found: a part of the address has more than ${NAME_CHARS_MAX} characters, and no name or id is that long`,
  );

const SLASH = 0x2f;
const OF_NAMES = /^\/(?:(?:api|admin)\/v1\/(?!mcp\/|a2a\/)|(?:models|tools|agents|images|videos|providers)\/)/;

type PageHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
const missingPages = new WeakMap<FastifyInstance, PageHandler>();

/** `answer` gets the requests of browsers for pages that do not exist. Programs still get the error as JSON. */
export function answerMissingPages(server: FastifyInstance, answer: PageHandler): void {
  missingPages.set(server, answer);
}

/** Paths of programs. A person who opens one of them in a browser is looking at the API. */
const API_PATH = /^\/(?:api|v1|mcp|a2a|health|metrics|assets|\.well-known)(?:\/|$)/;

/** Whether a browser shows the answer as a page. */
const isVisit = ({ method, headers }: FastifyRequest, path: string): boolean =>
  (method === 'GET' || method === 'HEAD') && headers.accept?.includes('text/html') === true && !API_PATH.test(path);

const NOTHING = Buffer.alloc(0);

/** A page up to this size fits in the send buffer of a connection. */
const SMALL_PAGE_BYTES = 64 * 1024;

/** Size of a page in bytes, or for a text its length, which is not more. 0 for other payloads. */
const sizeOf = (payload: unknown): number =>
  typeof payload === 'string' ? payload.length : Buffer.isBuffer(payload) ? payload.byteLength : 0;

/** PostgreSQL's SQLSTATE for a text with U+0000. The embedded engine can store such a text. */
const UNSTORABLE_CHARACTER = '22021';

/** Whether the disk of the database is full, so that nothing can be written. */
const isFull = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.full
    : error instanceof LedgerUnavailable && error.cause instanceof DatabaseError && error.cause.full;
const FULL =
  'The disk of the gateway is full, so it takes no calls: retry later. GET /api/v1/generation shows whether a call that had begun was charged';
const FULL_RETRY_S = 30;

/** Converts any thrown value to a GatewayError. An unknown error becomes `internal` and reveals nothing. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isFull(error)) return new GatewayError('service_unavailable', FULL, { retryAfterS: FULL_RETRY_S, cause: error });
  if (error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.unavailable)) {
    return new GatewayError(
      'service_unavailable',
      'The ledger is not reachable at the moment: retry shortly. GET /api/v1/generation shows whether a call that had begun was charged',
      { retryAfterS: 2, cause: error },
    );
  }
  if (error instanceof DatabaseError && error.code === UNSTORABLE_CHARACTER) {
    return new GatewayError(
      'invalid_request',
      'The request contains the character U+0000, which cannot be stored: leave it out',
      { cause: error },
    );
  }
  const { code, statusCode, validation, validationContext, message } = (error ?? {}) as Partial<FastifyError>;
  if (validation) return schemaError(validation, validationContext === 'body' ? 'The body' : 'The address');
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError(
        'payload_too_large',
        'The request body is larger than this endpoint takes: see limits.chat_body_bytes_max, limits.media_body_bytes_max and limits.body_bytes_max',
        { cause: error },
      );
    case 'FST_ERR_BAD_URL':
      return new GatewayError(
        'invalid_request',
        'The address is not valid: it has a percent sign that encodes no character',
        { cause: error },
      );
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_EMPTY_TYPE':
      return new GatewayError('invalid_request', 'Send the body as JSON with content-type: application/json', {
        cause: error,
      });
    default:
      if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
        return new GatewayError('invalid_request', message ?? 'The request is not valid', { cause: error });
      }
      return new GatewayError('internal', 'Internal error', { cause: error });
  }
}
