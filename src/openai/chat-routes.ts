import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError, printable, readJson, createKeepAlive, createHttpSink } from '#wire';
import { Departure, formatUsd } from '#billing/amounts';
import type { Config } from '#config';
import {
  type Admission,
  type Asked,
  type Caller,
  createCheck,
  createServe,
  errorWithTerms,
  type Idempotency,
  keyedRequest,
  NO_PAYMENTS,
  paidCaller,
  paidSink,
  parseIdempotencyKey,
  type Payments,
  type PaymentSlip,
  type Pipeline,
  publicAddress,
  rateHeaders,
  readPayment,
  recordReply,
  type Refusal,
  requestKey,
  type Speakers,
  tellPayment,
  withModel,
} from '#gateway';
import { requireAdmission } from '#auth';
import { refuseLookAlikes } from './request/acted-on.ts';
import { chatAnswerSchema } from './reply/chat-answer-schema.ts';
import { type OpenedChat, writeChatReply } from './chat-reply.ts';
import { chatSchema, type ChatBody } from './request/chat-schema.ts';
import { withMaxCost } from './request/max-cost.ts';
import { refusePlugins } from './request/refuse-plugins.ts';
import { refusePrivateMedia } from './request/media-hosts.ts';
import { createOpenChat } from './open-chat.ts';
import type { ToolLoopDeps } from './tool-loop/open-tool-loop.ts';

export interface ChatDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'> & Partial<Pick<Config, 'publicUrl' | 'webhooks'>>;
  /**
   * Agents and tools that can be named in the place of a model: `a2a/<agent>`, `mcp/<service>/<tool>`. Read with
   * each request. Default none.
   */
  readonly speakers?: () => Partial<Speakers>;
  /** For tools that the gateway calls for a model. Default: it calls none. */
  readonly toolLoop?: ToolLoopDeps;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Told of errors inside streams that have begun, and of runs that fail after their client left. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
  /** A stream that is silent this long gets a comment. */
  readonly keepAliveMs?: number;
}

const KEEP_ALIVE_MS = 15_000;

/** A request as it was read, before anything is looked up. */
interface ChatRequest {
  readonly body: ChatBody;
  readonly caller: Caller;
  readonly payment: PaymentSlip | null;
  /** The idempotency key; null for none. */
  readonly key: string | null;
  /** SHA-256 of the body. */
  readonly bodyHash: () => string;
}

/**
 * `POST /chat/completions`, streaming or not. Register it under `/api/v1`; errors before the first byte are thrown
 * to the server's error handler.
 */
export function chatRoutes(deps: ChatDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config, speakers = () => NO_SPEAKERS, toolLoop = null, now } = deps;
  const { limits } = config;
  const schema = chatSchema(limits.messagesMax);
  const readChat = createReadChat(payments, config, createCheck<ChatBody>(schema));
  const keepAlive = createKeepAlive(deps.keepAliveMs ?? KEEP_ALIVE_MS);
  const chooseChat = createOpenChat({ pipeline, config, speakers, toolLoop });
  const serve = createServe({ idempotency: deps.idempotency, payments });

  /** A request as `serve` answers it. */
  function asked(
    request: FastifyRequest,
    reply: FastifyReply,
    { rate }: Admission,
    chat: ChatRequest,
  ): Asked<OpenedChat> {
    const { body, caller, payment, key, bodyHash } = chat;
    const options = { keepAlive, onError: (error: unknown) => deps.onError(error, request) };
    const gone = new Departure();
    const client = createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(rate),
    );
    const context = {
      caller,
      payment,
      requestId: request.id,
      headers: request.headers,
      now: now(),
      replyBytesMax: config.upstream.replyBytesMax,
      receipts: config.billing.receipts,
    };
    return {
      caller,
      repeats: key === null ? null : { key, bodyHash: bodyHash() },
      gone,
      open: chooseChat(body, context, options.onError),
      async write(opened, kept) {
        if (!kept) {
          await writeChatReply(opened, paidSink(client, payment), options);
          return null;
        }
        const { sink, reply: whole, end } = recordReply(client);
        const charged = await writeChatReply(opened, paidSink(sink, payment), options);
        return { kept: whole, charged, end };
      },
      replay({ status, headers, body: bytes }) {
        client.head(status, { ...headers, 'idempotent-replayed': 'true' });
        client.end(bytes);
      },
      refuse: async (refusal) => {
        throw await refused(refusal, body, publicAddress(request, config.publicUrl ?? null));
      },
    };
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);

    // Bytes, so that the structure is capped before anything is built, and so that their digest can identify a
    // repeated request.
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: limits.chatBodyBytesMax } as const;
    app.addContentTypeParser('application/json', keep, (_request, body, done) => done(null, body));
    app.addContentTypeParser(/^application\/[\w.-]+\+json(?:;|$)/i, keep, (_request, body, done) => done(null, body));

    app.post<{ Body: Buffer | undefined }>(
      '/chat/completions',
      {
        bodyLimit: limits.chatBodyBytesMax,
        schema: {
          ...DESCRIBED,
          description: DESCRIBED.description + (payments.open ? PAYABLE : ''),
          body: schema,
          response: { 200: chatAnswerSchema },
        },
        // The body is bytes until the handler parses it, which checks it against the same schema.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        const admission = admissionOf(request);
        const read = readChat(request.body ?? EMPTY, request.headers, admission.caller);
        const chat = read instanceof Promise ? await read : read;
        try {
          await serve(asked(request, reply, admission, chat));
        } catch (error) {
          tellPayment(reply, chat.payment);
          throw error;
        }
        // The client left before the head: there is nobody to answer.
        if (!reply.sent) reply.hijack();
      },
    );
  };
}

type ReadChat = (bytes: Buffer, headers: IncomingHttpHeaders, admitted: Caller) => ChatRequest | Promise<ChatRequest>;

/** Reads and checks a request. It throws or rejects with GatewayError for what is wrong with it. */
function createReadChat(
  payments: Payments,
  { limits, webhooks }: ChatDeps['config'],
  check: (value: unknown) => ChatBody,
): ReadChat {
  return (bytes, headers, admitted) => {
    const understood = (parsed: unknown): ChatRequest | Promise<ChatRequest> => {
      refuseLookAlikes(parsed);
      const body = withMaxCost(check(withModel(parsed)), headers['x-max-cost']);
      refusePlugins(body);
      if (webhooks?.allowPrivate === false) refusePrivateMedia(body);
      const ownKey = idempotencyKeyIn(headers);
      const bodyHash = () => hash('sha256', bytes);
      const payment = payments.open ? readPayment(headers, () => keyedRequest(bodyHash(), ownKey)) : null;
      const of = (caller: Caller) => ({ body, caller, payment, key: requestKey(caller, payment, ownKey), bodyHash });
      return payment === null ? of(admitted) : paidCaller(payments, admitted, payment).then(of);
    };
    refuseEncoding(headers['content-encoding']);
    const parsed = readJson(bytes, limits);
    return parsed instanceof Promise ? parsed.then(understood) : understood(parsed);
  };
}

const DESCRIBED = {
  summary: 'Create a chat completion',
  operationId: 'createChatCompletion',
  description:
    'Routes the conversation to a provider of the model, locks the estimated cost, and settles by actual use. ' +
    'With `stream` the answer is `text/event-stream`: `data:` frames with `choices[].delta`, the last of which carries `finish_reason` and `usage`, then `data: [DONE]`. ' +
    'Fields of the published chat API and the usual sampling extensions that are not listed here are passed to the provider untouched, others to providers ' +
    'that list them; the header `x-tollgate-dropped` names those that were not passed on. ' +
    '`a2a/<agent>` and `mcp/<service>/<tool>` in the place of a model ask an agent or a tool, at its own price. ' +
    'Tools of type `mcp` are called by the gateway itself: `usage.cost` is then the sum of all calls, which `usage.cost_details.children` lists.',
  tags: ['Chat'],
  consumes: ['application/json'],
};
const PAYABLE =
  ' What the balance does not reach for is answered with 402 and the terms of x402 (version 2) in `PAYMENT-REQUIRED`: the same request with a payment in `PAYMENT-SIGNATURE` ' +
  'is answered, from whoever has no account too.';
const EMPTY = Buffer.alloc(0);
const MODEL_CHARS_MAX = 128;
const NO_SPEAKERS: Partial<Speakers> = {};

/** The error of a request that was refused for want of money: with terms where it can be paid. */
async function refused(
  { error, payable, amount, terms }: Refusal,
  { model }: ChatBody,
  url: string,
): Promise<GatewayError> {
  if (!payable) return error;
  const description = `A chat completion by ${printable(model, MODEL_CHARS_MAX)}, at most ${formatUsd(amount)} USDC more`;
  return errorWithTerms(error, await terms({ url, description, mimeType: 'application/json' }));
}

function idempotencyKeyIn({ 'idempotency-key': header }: IncomingHttpHeaders): string | null {
  return header === undefined ? null : parseIdempotencyKey(header);
}

function refuseEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encoding === '' || encoding === 'identity') return;
  throw new GatewayError('invalid_request', 'Send the body uncompressed, without content-encoding', {
    param: 'content-encoding',
  });
}
