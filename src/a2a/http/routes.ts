import type { FastifyPluginAsync, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { printable } from '#security';
import { GatewayError } from '#errors';
import {
  createAnswer,
  createHttpSink,
  type KeepAlive,
  PARSED_JSON,
  readBytes,
  toGatewayError,
  heldBodyOf,
  DOCUMENTED,
} from '#http';
import { A2A_ERROR } from '#http/error-schemas';
import { type Pipeline, MAX_COST_HEADER, requestedQuote } from '#call';
import { type Caller, needsCredential } from '#accounts';
import { rateHeaders, type Admission, type OnRefused } from '#limits';
import { receiptHeaders, type Payments, type PaymentAttempt } from '#payments';
import { agentAt, requireAdmission } from '#auth';
import type { Config } from '#config';
import {
  type A2aRequest,
  type Address,
  addressOf,
  Misread,
  parseRequest,
  readAddress,
  readVersionOf,
  saysVersion,
} from '../protocol/parse-request.ts';
import { A2aError, restMediaType, toA2aError } from '../wire/errors.ts';
import type { CardOrigin } from '../cards/card-pages.ts';
import type { A2aHandler } from './handler.ts';
import { createReplyWriter, type ReplyEnvelope } from '../protocol/reply-writer.ts';
import { Extensions } from '../protocol/extensions.ts';
import { paidMessage } from '../protocol/x402.ts';
import { isStreaming, type A2aOperation } from '../wire/protocol.ts';
import { refusePrivateFiles, refuseAmbiguousKeys, refuseRepeatedKeys } from '../protocol/request-fields.ts';

export interface A2aRoutesDeps {
  readonly admit: Pipeline['admit'];
  readonly handler: A2aHandler;
  readonly payments: Payments;
  readonly isService: (name: string) => boolean;
  readonly limits: Pick<Config['limits'], 'bodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
  readonly receipts: Config['billing']['receipts'];
  /** Allows file URLs on hosts of private networks, for development. */
  readonly allowPrivate: boolean;
  readonly keepAlive: KeepAlive;
  readonly origin: (request: FastifyRequest) => CardOrigin | null;
  /** The value of `WWW-Authenticate` for an error that another credential would avoid; null for other errors. */
  readonly challenge: (request: FastifyRequest, error: GatewayError) => string | null;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
  /** Told of each error that is the reply to a request, also to one that became a call. */
  readonly onRefused?: OnRefused | undefined;
}

/**
 * The routes of `/a2a` (all agents) and `/a2a/{service}`: both versions by JSON-RPC and HTTP+JSON, and the bare
 * message. Register them at the root and under `/api/v1`.
 */
export function a2aRoutes(deps: A2aRoutesDeps): FastifyPluginAsync {
  const { bodyBytesMax } = deps.limits;
  return async (app) => {
    const answer = createAnswerRequest(deps, app.prefix, requireAdmission(app, deps.admit, true, false));
    // Fastify's validation is off, because the protocol has its own errors for invalid messages.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(['application/json', 'application/a2a+json'], readBytes(PARSED_JSON));

    app.setErrorHandler((thrown, request, reply) => {
      const { version = '1.0' } = readVersionOf(request);
      const binding = addressOf(request, app.prefix, version, deps.isService).kind === 'rpc' ? 'jsonrpc' : 'rest';
      const error =
        (thrown as { readonly code?: unknown }).code === NO_PARSER
          ? otherContentType(request.headers['content-type'])
          : thrown;
      const { status, headers, text } = toA2aError(error, { version, binding });
      if (status >= 500) deps.onError(error, request);
      const challenge = deps.challenge(request, toGatewayError(error));
      void reply
        .code(status)
        .headers(challenge === null ? headers : { ...headers, 'www-authenticate': challenge })
        .type(binding === 'rest' ? restMediaType(version, request.headers.accept) : 'application/json')
        .send(text);
    });

    const refusal = (error: GatewayError) => toA2aError(error, { version: '1.0', binding: 'rest' });
    for (const path of ['/a2a', '/a2a/*'] as const) {
      const all = path === '/a2a';
      const described = describeEndpoint(all, app.prefix !== '');
      // The address of all agents takes only POST. Its other routes say so.
      const config = all ? ({ refusesMethod: true } as const) : {};
      const methodsAt = (path: string) => methodsOf(path.slice(`${app.prefix}/a2a`.length), deps.isService);
      app.post(
        path,
        { bodyLimit: bodyBytesMax, schema: described.post, config: { refusal, ...(all ? {} : { methodsAt }) } },
        answer,
      );
      app.get(path, { schema: described.get, exposeHeadRoute: false, config }, answer);
      app.delete(path, { schema: described.get, config }, answer);
    }
  };
}

/** The methods of an address below `/a2a`. The address of an agent takes messages, and its routes have their own. */
function methodsOf(path: string, isService: (name: string) => boolean): readonly string[] {
  const address = readAddress('OPTIONS', path, null, isService);
  return address.kind === 'verb' ? address.allowed : ['POST'];
}

/** An error of A2A as one of the gateway, for the list of refused requests. */
const toRefusal = ({ type, message }: A2aError): GatewayError =>
  new GatewayError(type === 'TaskNotFound' ? 'not_found' : 'invalid_request', message);

const NO_PARSER = 'FST_ERR_CTP_INVALID_MEDIA_TYPE';

const otherContentType = (type: string | undefined) =>
  new A2aError(
    'ContentTypeNotSupported',
    `The body must have the Content-Type application/json or application/a2a+json, not ${printable(type ?? 'none')}`,
    { param: 'Content-Type' },
  );

/** Answers one HTTP request below `/a2a`, of any version and binding. Never throws. */
function createAnswerRequest(
  deps: A2aRoutesDeps,
  prefix: string,
  admissionOf: (request: FastifyRequest) => Admission,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const { limits, payments } = deps;
  return async (request, reply) => {
    const version = readVersionOf(request);
    const address = addressOf(request, prefix, saysVersion(request) ? (version.version ?? null) : null, deps.isService);
    const gone = new AbortController();
    const sink = createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(admissionOf(request).rate),
    );
    const extensions = new Extensions(request.headers, payments.open);
    // Until the request is parsed, its address decides the form of errors.
    let envelope: ReplyEnvelope = {
      binding: address.kind === 'rpc' ? 'jsonrpc' : 'rest',
      idText: 'null',
      bare: false,
      version: version.version ?? '1.0',
      operation: null,
    };
    let payment: PaymentAttempt | null = null;
    let challenge: string | null = null;
    const writer = () =>
      createReplyWriter({
        ...envelope,
        accept: request.headers.accept,
        moreHeaders: () => ({
          ...receiptHeaders(payment),
          ...extensions.headers,
          ...(challenge === null ? {} : { 'www-authenticate': challenge }),
        }),
        answer: (headers) =>
          createAnswer({
            sink,
            events: envelope.operation !== null && isStreaming(envelope.operation),
            keepAlive: deps.keepAlive,
            headers: () => ({ ...headers(), ...extensions.headers }),
          }),
        onError: (error) => deps.onError(error, request),
        onRefused(error) {
          const { caller } = admissionOf(request);
          const refusal = error instanceof A2aError ? toRefusal(error) : error;
          deps.onRefused?.({
            error: refusal,
            caller,
            target: `A2A ${'service' in address ? (address.service ?? '') : ''}`.trimEnd(),
            requestId: request.id,
          });
        },
      });
    // If the client leaves, its message is still answered.
    const giveBodyBack = heldBodyOf(request)?.keep();
    try {
      const { caller } = admissionOf(request);
      if ('service' in address) refuseOtherAgent(caller, address.service, deps.isService);
      if (caller.anonymous && !maySend(address, request.method)) throw needsCredential();
      const { ask: parsed, ...form } = await parseRequest(request, address, limits);
      const { operation, params, paramsText, version } = parsed;
      envelope = { ...form, version, operation };
      refuseAmbiguousKeys(params);
      if (!deps.allowPrivate) refusePrivateFiles(params);
      if (form.binding === 'jsonrpc') refuseRepeatedKeys(paramsText);
      if (caller.anonymous && !sends(operation)) throw needsCredential();
      const paid = sends(operation) ? await paidMessage(payments, caller, parsed) : { caller, payment: null };
      payment = paid.payment;
      const { headers, id: requestId } = request;
      const ask: A2aRequest = {
        ...parsed,
        ...paid,
        requestId,
        traceparent: single(headers['traceparent']),
        wantsReceipt: deps.receipts === 'always' || headers['x-receipt'] === '1' || headers['x-receipt'] === 'true',
        maxCost: headers[MAX_COST_HEADER] ?? null,
        quote: sends(operation) ? requestedQuote(null, headers, null) : null,
        extensions,
        origin: () => deps.origin(request),
      };
      await deps.handler(ask, writer(), gone.signal);
    } catch (thrown) {
      if (thrown instanceof Misread) envelope = { ...envelope, idText: thrown.idText, version: thrown.version };
      const error = thrown instanceof Misread ? thrown.fault : thrown;
      challenge = deps.challenge(request, toGatewayError(error));
      await writer().fail(error);
    } finally {
      giveBodyBack?.();
    }
    // The client disconnected before the head was written, so no response is sent.
    if (!reply.sent) reply.hijack();
  };
}

/** Throws GatewayError `permission_denied` if the access token is for other agents. */
function refuseOtherAgent({ agents }: Caller, service: string, isService: (name: string) => boolean): void {
  if (agents === undefined || agents.some((address) => agentAt(address, isService) === service)) return;
  throw new GatewayError(
    'permission_denied',
    `This access token is only for /a2a/${agents.join(' and /a2a/')}: ask for a token for this agent`,
  );
}

/** Only sends can be paid in place. Every other operation needs a credential. */
const sends = (operation: A2aOperation): boolean => operation === 'send' || operation === 'stream';

/** False if the address shows that the request is not a send. True for a wrong verb, so that it gets its own error. */
function maySend(address: Address, method: string): boolean {
  if (address.kind === 'verb') return true;
  return method === 'POST' && (address.kind !== 'rest' || sends(address.match.operation));
}

const single = (value: string | string[] | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

const TAGS = ['Agents'];

const ABOUT =
  'A2A 0.3 and 1.0 (header `A2A-Version`; without it 0.3, or what the method is of): one JSON-RPC 2.0 request such as `message/send` or `SendMessage`, or, below the ' +
  'address of the agent, the routes of HTTP+JSON (`/message:send`, `/tasks/{id}`, …). A bare `{"message": …}` is answered with its task. Messages are billed: the estimate ' +
  'is locked, and settled once when the task ends; everything else is free. Metadata of the reply tells its cost.';

const HEADERS = {
  type: 'object',
  properties: {
    'a2a-version': {
      type: 'string',
      description: '`0.3` or `1.0`',
      [DOCUMENTED]: { pattern: '^(?:0\\.3|1\\.0)$' },
    },
  },
};

const BODY = {
  title: 'AgentRequest',
  type: 'object',
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'integer', 'null'] },
    method: { type: 'string' },
    params: { type: 'object' },
    message: { type: 'object', description: 'Alone, without `jsonrpc`: the bare form of a message.' },
  },
  additionalProperties: true,
  [DOCUMENTED]: {
    allOf: [
      {
        anyOf: [
          { required: ['jsonrpc', 'method'] },
          { required: ['message'], not: { anyOf: [{ required: ['jsonrpc'] }, { required: ['method'] }] } },
        ],
      },
    ],
  },
};

const EXAMPLE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] } },
};

function describeEndpoint(all: boolean, hide: boolean): Readonly<Record<'post' | 'get', FastifySchema>> {
  const params = {
    type: 'object',
    properties: {
      '*': {
        type: 'string',
        description: 'Name of the agent, or `<provider id>:<name>`; routes of HTTP+JSON follow it',
      },
    },
  };
  const common = { tags: TAGS, hide, headers: HEADERS, ...(all ? {} : { params }), response: { default: A2A_ERROR } };
  return {
    post: {
      ...common,
      response: {
        200: {
          type: 'object',
          description: 'The result, as JSON or as a stream of events.',
          additionalProperties: true,
        },
        default: A2A_ERROR,
      },
      summary: all ? 'Send a message to the agent that it names' : 'Send a message to an agent',
      operationId: all ? 'sendMessage' : 'sendMessageToAgent',
      description: ABOUT,
      consumes: ['application/json', 'application/a2a+json'],
      body: { ...BODY, examples: [EXAMPLE] },
    },
    get: { ...common, hide: true },
  };
}
