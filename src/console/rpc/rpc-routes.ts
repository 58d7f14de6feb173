import type { FastifyInstance, FastifyPluginAsync, FastifySchema } from 'fastify';
import {
  createHttpSink,
  EXAMPLE_MODEL,
  noteVisitor,
  PARSED_JSON,
  readBytes,
  toGatewayError,
  UNCOUNTED_BYTES,
} from '#http';
import { JSON_RPC_ERROR } from '#http/error-schemas';
import type { GatewayError } from '#errors';
import type { Config } from '#config';
import { createReplyMemory, type Pipeline, type ReplyHold } from '#call';
import { createAnswerBody } from './answer-body.ts';
import { CODE, toRpcFault } from './errors-rpc.ts';
import { createAsk } from './inner-request.ts';
import type { HasRoute } from './method.ts';
import { methodsOf } from './method-table.ts';
import { offerMethods, type Offered } from './dispatch.ts';
import { namelessError } from './outcome.ts';

interface RpcDeps {
  /** The `inject` of the server with all routes. */
  readonly inject: FastifyInstance['inject'];
  readonly hasRoute: HasRoute;
  readonly pipeline: Pick<Pipeline, 'visitor' | 'count'>;
  readonly config: Pick<Config, 'publicUrl'> & {
    readonly limits: Pick<Config['limits'], 'chatBodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
    readonly upstream: Pick<Config['upstream'], 'replyBytesMax'>;
  };
  readonly version: string;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/**
 * Memory in bytes for replies of this endpoint that clients have not read yet. One account, or one network of callers
 * without an account, may use a quarter of it.
 */
const REPLIES_BYTES_MAX = 64 * 1024 * 1024;

/**
 * `POST /rpc`: all routes of this gateway by JSON-RPC 2.0. Each entry becomes one request to its route, which
 * authenticates, counts, bills and answers it. Only requests whose route needs no credential are counted here. Register
 * it once, under `/api/v1`.
 */
export function rpcRoutes(deps: RpcDeps): FastifyPluginAsync {
  const { limits, upstream, publicUrl } = deps.config;
  const ask = createAsk(deps.inject);
  const memory = createReplyMemory({ repliesBytesMax: REPLIES_BYTES_MAX, replyBytesMax: upstream.replyBytesMax });

  return async (app) => {
    // The entries are checked later, and errors have the format of JSON-RPC.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(/^application\/(?:[\w.-]+\+)?json(?:;|$)/i, readBytes(PARSED_JSON));

    // Only for bodies that are counted: in the share of the account, and a stranger may send less.
    app.addHook('onRequest', async (request) => {
      if (!(Number(request.headers['content-length']) <= UNCOUNTED_BYTES))
        noteVisitor(request, await deps.pipeline.visitor(request.headers, request.ip));
    });

    app.setErrorHandler((error, request, reply) => {
      const known = toGatewayError(error);
      if (known.code === 'internal') deps.onError(known.cause ?? error, request);
      const { error: fault, status, headers } = toRpcFault(known);
      // This is an error of the whole body, so it is not "invalid params".
      const code = known.code === 'invalid_request' ? CODE.invalidRequest : fault.code;
      void reply
        .code(status)
        .headers(headers)
        .type('application/json')
        .send(namelessError(code, fault.message, fault.data));
    });

    // Made at the first request, when all routes are registered.
    let offered: Offered | null = null;
    const offer = () =>
      offerMethods({
        ask,
        methods: methodsOf(deps.hasRoute),
        version: deps.version,
        url: `${publicUrl ?? ''}${app.prefix}/rpc`,
      });

    const answer = createAnswerBody({
      pipeline: deps.pipeline,
      hold: (account) => memory.open(account, false, null),
      limits,
      replyBytesMax: upstream.replyBytesMax,
      offered: () => (offered ??= offer()),
      report: deps.onError,
    });

    const refusal = (error: GatewayError) => ({
      status: 405,
      headers: error.headers ?? {},
      text: namelessError(CODE.invalidRequest, error.message, toRpcFault(error).error.data),
    });
    app.post(
      '/rpc',
      { bodyLimit: limits.chatBodyBytesMax, schema: DESCRIPTION, config: { refusal } },
      async (request, reply) => {
        const gone = new AbortController();
        const sink = createHttpSink(
          reply,
          limits.clientStallMs,
          () => gone.abort(),
          () => ({}),
        );
        let hold: ReplyHold | null = null;
        reply.raw.on('close', () => hold?.release());
        const { pieces, status, headers } = await answer(request, gone.signal, (held) => (hold = held));
        if (!sink.closed) {
          const length = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
          sink.head(
            status,
            pieces.length === 0 ? {} : { ...headers, 'content-type': 'application/json', 'content-length': length },
          );
          for (const piece of pieces.slice(0, -1)) sink.write(piece);
          sink.end(pieces.at(-1) ?? NOTHING);
        }
        // The client has left, so there is nobody to answer.
        if (!reply.sent) reply.hijack();
      },
    );
  };
}

const NOTHING = Buffer.alloc(0);

const POST =
  'One request, or a batch of up to 50. `rpc.discover` answers with the OpenRPC document of all methods: `models/list`, `chat/completions`, `tools/call`, ' +
  '`message/send`, `account/balance` and the others. Each entry of a batch is a separate call: it is authorised, counted and billed by itself, and answered in order. ' +
  '`result._meta` tells the cost of a billed call. Parameters are given by name; notifications are not executed; streams have their own endpoints.';

const REQUEST = {
  title: 'RpcRequest',
  type: 'object',
  required: ['jsonrpc', 'id', 'method'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'number'], description: 'The reply repeats it exactly as it was written' },
    method: { type: 'string', description: 'Such as `models/list`' },
    params: { type: 'object' },
  },
};

const REPLY = {
  title: 'RpcReply',
  type: 'object',
  description: 'It has either `result` or `error`.',
  required: ['jsonrpc', 'id'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'number', 'null'] },
    result: {},
    error: JSON_RPC_ERROR.properties.error,
  },
  additionalProperties: true,
};

const example = {
  jsonrpc: '2.0',
  id: 1,
  method: 'chat/completions',
  params: { model: EXAMPLE_MODEL, messages: [{ role: 'user', content: 'Hello' }] },
};

/** The description of the endpoint for the API reference. It is not used to validate requests. */
const DESCRIPTION: FastifySchema = {
  tags: ['JSON-RPC'],
  // Some methods need no credential.
  security: [{}, { bearer: [] }, { apiKey: [] }, { wallet: [] }],
  summary: 'Call any primitive by JSON-RPC',
  description: POST,
  consumes: ['application/json'],
  body: { anyOf: [REQUEST, { type: 'array', minItems: 1, maxItems: 50, items: REQUEST }], examples: [example] },
  response: {
    200: {
      description: 'The reply, or the replies to a batch.',
      anyOf: [REPLY, { type: 'array', items: REPLY }],
    },
    204: { description: 'Nothing to answer: the body had only notifications.', type: 'null' },
    default: JSON_RPC_ERROR,
  },
};
