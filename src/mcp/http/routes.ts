import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import {
  type ClientAnswer,
  createAnswer,
  createHttpSink,
  type KeepAlive,
  heldBodyOf,
  PARSED_JSON,
  readBytes,
  toGatewayError,
} from '#http';
import { errorText, parseMessage } from '#json-rpc';
import { GatewayError } from '#errors';
import { jsonText, readJsonText } from '#wire';
import { CancelSource } from '#billing/amounts';
import type { Config } from '#config';
import { needsCredential, type Caller } from '#accounts';
import type { Pipeline } from '#call';
import { rateHeaders } from '#limits';
import { requireAdmission } from '#auth';
import { NO_SESSION } from '../request/mcp-request.ts';
import { classify } from '../wire/classify.ts';
import type { SessionTransport } from './session-transport.ts';
import { describeRoutes } from './described-routes.ts';
import type { AnswerCallDeps } from '../call/answer-call.ts';
import { toMcpError, worthTelling, type McpErrorReply, statusInSession } from '../wire/errors-mcp.ts';
import { ERROR, isLegacyRevision } from '../wire/revisions.ts';
import type { RequestContext, StatelessRequest } from '../call/stateless.ts';

/** Answers requests without a session, modern or bare. `service` is null for the aggregate. */
export type StatelessTransport = (
  service: string | null,
  request: StatelessRequest,
  context: RequestContext,
  answer: ClientAnswer,
) => Promise<void>;

export interface McpRoutesDeps {
  readonly admit: Pipeline['admit'];
  readonly count: Pipeline['count'];
  /** Says what is wrong with a request's Origin or Host; null if they are valid. */
  readonly guard: (headers: IncomingHttpHeaders, rawHeaders?: readonly string[]) => string | null;
  readonly challenge: (request: FastifyRequest, error: GatewayError) => string | null;
  /**
   * True, the default: clients without a credential can look around and pay. False: their first request is refused, and
   * the refusal says where to get a token. Clients of an OAuth issuer expect this.
   */
  readonly strangers?: boolean;
  readonly stateless: StatelessTransport;
  readonly legacy: SessionTransport;
  readonly limits: Pick<Config['limits'], 'bodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
  readonly onRefused?: AnswerCallDeps['onRefused'];
  readonly keepAlive: KeepAlive;
}

/**
 * `/mcp` (everything that the caller may use) and `/mcp/{service}`, for every revision. Register it at the root and
 * under `/api/v1`.
 */
export function mcpRoutes(deps: McpRoutesDeps): FastifyPluginAsync {
  const { limits, onError } = deps;

  return async (app) => {
    // Runs before authentication, because a page that uses DNS rebinding must not learn whether the caller is known.
    app.addHook('onRequest', (request, _reply, done) => {
      const fault = deps.guard(request.headers, request.raw.rawHeaders);
      if (fault === null) done();
      else done(new GatewayError('permission_denied', fault));
    });
    const admissionOf = requireAdmission(app, deps.admit, true, false);
    if (deps.strangers === false)
      app.addHook('onRequest', (request, _reply, done) => {
        if (admissionOf(request).caller.anonymous) done(needsCredential());
        else done();
      });

    // No schema validation, because an invalid message must get an MCP error.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/json', readBytes(PARSED_JSON));

    app.setErrorHandler(async (error, request, reply) => {
      const known = toGatewayError(error);
      const body = await bodyOfRefused(request, known, limits);
      const { status, headers, text } = refusalOf(error, body, request.headers);
      const fault = worthTelling(error);
      if (fault !== null) onError(fault, request);
      const challenge =
        known.code === 'unauthorized' || known.code === 'permission_denied' ? deps.challenge(request, known) : null;
      return reply
        .code(status)
        .headers(challenge === null ? headers : { ...headers, 'www-authenticate': challenge })
        .type('application/json')
        .send(text);
    });

    const { post, listen, end } = createHandlers(deps, admissionOf);
    const refusal = (error: GatewayError) => toMcpError(error, 'null');
    for (const [path, serviceOf] of [
      ['/mcp', () => null],
      ['/mcp/*', (request: FastifyRequest) => (request.params as { readonly '*': string })['*'] || null],
    ] as const) {
      const all = path === '/mcp';
      const described = describeRoutes(all, app.prefix !== '');
      app.post(
        path,
        { bodyLimit: limits.bodyBytesMax, schema: described.post, config: { refusal } },
        (request, reply) => post(serviceOf(request), request, reply),
      );
      app.get(path, { schema: described.get, exposeHeadRoute: false }, (request, reply) =>
        listen(serviceOf(request), request, reply),
      );
      app.delete(path, { schema: described.delete }, (request, reply) => end(serviceOf(request), request, reply));
    }
  };
}

function createHandlers(
  { stateless, count, limits, legacy, onError, onRefused, keepAlive }: McpRoutesDeps,
  admissionOf: ReturnType<typeof requireAdmission>,
) {
  const contextOf = (request: FastifyRequest, gone: CancelSource): RequestContext => ({
    caller: admissionOf(request).caller,
    requestId: request.id,
    selection: selectionOf(request),
    headers: request.headers,
    gone,
  });

  const refused = (request: FastifyRequest, service: string | null, error: unknown) =>
    onRefused?.({
      error,
      caller: admissionOf(request).caller,
      target: `MCP ${service ?? ''}`.trimEnd(),
      requestId: request.id,
    });

  const sinkOf = (request: FastifyRequest, reply: FastifyReply, gone: CancelSource) =>
    createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(admissionOf(request).rate),
    );

  async function post(service: string | null, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const read = readJsonText((request.body as Buffer | undefined) ?? NOTHING, limits);
    const { text: body, value } = read instanceof Promise ? await read : read;
    const inbound = classify(
      body,
      {
        version: header(request, 'mcp-protocol-version'),
        method: header(request, 'mcp-method'),
        name: header(request, 'mcp-name'),
        session: header(request, 'mcp-session-id'),
        accept: header(request, 'accept'),
      },
      value,
    );
    if (inbound.kind === 'refused') {
      const { idText, error } = inbound;
      refused(request, service, new GatewayError('invalid_request', error.message));
      const inSession = idText !== 'null' && namesSession(request.headers) && !OF_MODERN.has(error.code);
      await reply
        .code(inSession ? 200 : inbound.status)
        .type('application/json')
        .send(errorText(idText, error));
      return;
    }
    if (inbound.kind === 'modern-notification') {
      // The modern revision keeps no state between requests, so a notification has no effect. Closing a stream cancels.
      await reply.code(202).send();
      return;
    }
    refuseAnonymous(admissionOf(request).caller, inbound.kind === 'batch' ? inbound.texts : [inbound.message.text]);
    const gone = new CancelSource();
    const sink = sinkOf(request, reply, gone);
    // Not for `initialize`: the headers of its answer have the session's id, which is known only at the end.
    const events = 'acceptsEvents' in inbound && inbound.acceptsEvents && inbound.kind !== 'initialize';
    const answer = createAnswer({ sink, events, keepAlive });
    const context = contextOf(request, gone);
    // If the client leaves, the call may go on.
    const giveBodyBack = heldBodyOf(request)?.keep();
    try {
      if (inbound.kind === 'modern' || inbound.kind === 'bare') {
        const { kind: client, message } = inbound;
        const capabilities = inbound.kind === 'modern' ? inbound.capabilities : {};
        await stateless(service, { client, message, capabilities, events }, context, answer);
      } else {
        if (inbound.kind === 'batch' && inbound.texts.length > 1) await count(context.caller, inbound.texts.length - 1);
        await legacy.post(service, inbound, context, answer);
      }
    } catch (error) {
      const fault = worthTelling(error);
      if (fault !== null) onError(fault, request);
      refused(request, service, error);
      const { status, headers, text } = refusalOf(error, body, request.headers);
      answer.end(text, status, headers);
    } finally {
      giveBodyBack?.();
    }
    // The client left before the response headers were sent, so nothing is answered.
    if (!reply.sent) reply.hijack();
  }

  async function listen(service: string | null, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const session = header(request, 'mcp-session-id');
    // A client without a credential has no session to listen to.
    const { anonymous } = admissionOf(request).caller;
    const isListener = !anonymous && session !== null;
    if (!isListener || !(header(request, 'accept') ?? '').includes('text/event-stream')) {
      // A caller with a session may listen, but must accept events.
      if (!isListener) reply.header('allow', 'POST, DELETE');
      await reply
        .code(isListener ? 406 : 405)
        .type('application/json')
        .send(errorText('null', { code: ERROR.server, message: TRANSPORTS }));
      return;
    }
    const gone = new CancelSource();
    const sink = sinkOf(request, reply, gone);
    await legacy.listen(service, session, contextOf(request, gone), sink);
    if (!reply.sent) reply.hijack();
  }

  async function end(service: string | null, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const session = header(request, 'mcp-session-id');
    if (session === null)
      throw new GatewayError('invalid_request', 'DELETE ends a session. Send the Mcp-Session-Id of the session', {
        param: 'Mcp-Session-Id',
      });
    const ended = await legacy.end(service, session, contextOf(request, new CancelSource()));
    await (ended
      ? reply.code(204).send()
      : reply.code(NO_SESSION.status).type('application/json').send(NO_SESSION.text));
  }

  return { post, listen, end };
}

/** For clients of another transport. Without this text their users would suspect the address or the key. */
const TRANSPORTS =
  'This address supports Streamable HTTP, the transport of MCP since 2025-03-26: POST one JSON-RPC message. GET opens the event stream of a session ' +
  'that was opened by initialize, with its Mcp-Session-Id and Accept: text/event-stream; DELETE ends it. ' +
  'The HTTP+SSE transport of 2024-11-05 is not served: set the transport of your client to http or streamable-http';

/** Errors of requests that belong to no session, although they name one. */
const OF_MODERN: ReadonlySet<number> = new Set([ERROR.headerMismatch, ERROR.unsupportedVersion]);

const NOTHING = Buffer.alloc(0);

/** The value of `?services=`, which may be repeated; null without one. */
function selectionOf({ query }: FastifyRequest): string | null {
  const { services } = query as { readonly services?: string | readonly string[] };
  return typeof services === 'object' ? services.join() : (services ?? null);
}

function header({ headers }: FastifyRequest, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null;
}

function namesSession(headers: IncomingHttpHeaders): boolean {
  const version = headers['mcp-protocol-version'];
  return (
    typeof headers['mcp-session-id'] === 'string' &&
    (version === undefined || (typeof version === 'string' && isLegacyRevision(version)))
  );
}

/**
 * The body of a refused POST, so that the refusal can have its id. Null for other methods, and for an unreadable body.
 * If the request was refused before its body was read, the body is read now: a large one only in a session of a
 * known caller, because only there the answer needs the id.
 */
async function bodyOfRefused(
  request: FastifyRequest,
  { code }: GatewayError,
  limits: Parameters<typeof jsonText>[1],
): Promise<string | null> {
  if (request.method !== 'POST') return null;
  try {
    const body = (request.body as Buffer | undefined) ?? (await readLate(request, code));
    return body && jsonText(body, limits);
  } catch {
    return null;
  }
}

/** Refusals before the body is read. The refusal of a page of another site is not among them: it learns nothing. */
const BEFORE_THE_BODY: ReadonlySet<string> = new Set(['unauthorized', 'rate_limit_exceeded', 'service_unavailable']);
const SMALL_BYTES = 64 * 1024;

async function readLate(request: FastifyRequest, code: string): Promise<Buffer | null> {
  if (request.raw.readableDidRead || !BEFORE_THE_BODY.has(code)) return null;
  const small = Number(request.headers['content-length'] ?? Infinity) <= SMALL_BYTES;
  if (!small && (code === 'unauthorized' || !namesSession(request.headers))) return null;
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  readBytes(PARSED_JSON)(request, request.raw, (error, body) => resolve(error === null ? (body ?? null) : null));
  return promise;
}

/**
 * The refusal of a POST as its answer, with the id of the request in `body`, if there is one. `body`: null if it could
 * not be read.
 */
function refusalOf(error: unknown, body: string | null, headers: IncomingHttpHeaders): McpErrorReply {
  const message = body === null ? null : parseMessage(body);
  const hasId = message?.kind === 'request';
  const refusal = toMcpError(error, hasId ? message.idText : 'null');
  return hasId && namesSession(headers) ? { ...refusal, status: statusInSession(refusal) } : refusal;
}

/** Requests that need no credential: they look around, or carry a payment. */
const ALLOWED: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);

/**
 * Refuses messages (JSON text) of a caller without a credential, if one of them needs a credential. Throws GatewayError
 * `unauthorized`.
 */
function refuseAnonymous({ anonymous }: Pick<Caller, 'anonymous'>, texts: readonly string[]): void {
  if (!anonymous) return;
  for (const text of texts) {
    const message = parseMessage(text);
    if (message?.kind === 'request' && !ALLOWED.has(message.method)) throw needsCredential();
  }
}

const SSE_ADDRESS =
  'This gateway does not support HTTP+SSE, the transport of MCP 2024-11-05. Connect to /mcp, or /mcp/<service>, by Streamable HTTP (http or streamable-http in the settings of most clients)';

/**
 * `/sse`, the usual address of the old transport. Answers 404, and says which address to use instead. Register it next
 * to `/mcp`.
 */
export const oldTransport: FastifyPluginAsync = async (app) => {
  app.route({
    method: ['GET', 'HEAD', 'POST'],
    url: '/sse',
    schema: { hide: true },
    exposeHeadRoute: false,
    // An early hook, because the body is not read and may be of any type.
    onRequest: async (_request, reply) => {
      await reply
        .code(404)
        .type('application/json')
        .send(errorText('null', { code: ERROR.server, message: SSE_ADDRESS }));
    },
    handler: () => {},
  });
};
