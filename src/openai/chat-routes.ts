import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import {
  GatewayError,
  ofGeneration,
  printable,
  readJson,
  createKeepAlive,
  createHttpSink,
  type ReplySink,
} from '#wire';
import { formatUsd } from '#billing/amounts';
import type { Config } from '#config';
import {
  createCheck,
  keyedRequest,
  newCallId,
  NO_PAYMENTS,
  ownIdempotencyKey,
  paidCaller,
  paidSink,
  parseIdempotencyKey,
  paymentKey,
  publicAddress,
  readPayment,
  tellPayment,
  toGatewayError,
  withTerms,
  type Caller,
  type Idempotency,
  type Payments,
  type PaymentSlip,
  type Pipeline,
  type Speakers,
} from '#gateway';
import { requireAdmission } from '#auth';
import { refuseLookAlikes } from './request/acted-on.ts';
import { chatAnswerSchema } from './reply/chat-answer-schema.ts';
import { writeChatReply } from './chat-reply.ts';
import { chatSchema, type ChatBody } from './request/chat-schema.ts';
import { answerOnce } from './idempotent-reply.ts';
import { withMaxCost } from './request/max-cost.ts';
import { refusePlugins } from './request/refuse-plugins.ts';
import { refusePrivateMedia } from './request/media-hosts.ts';
import { withModel } from './request/models-asked.ts';
import { createOpenChat } from './open-chat.ts';
import type { ToolLoopDeps } from './tool-loop/open-tool-loop.ts';

export interface ChatDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'> & Partial<Pick<Config, 'publicUrl' | 'webhooks'>>;
  /**
   * What can be asked as if it were a model, asked for with each request: `a2a/<agent>`, `mcp/<service>/<tool>`.
   * Default nothing.
   */
  readonly speakers?: () => Partial<Speakers>;
  /** What tools that the gateway calls for a model need. Default: there are none. */
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

/**
 * `POST /chat/completions`, streaming or not. Register it under `/api/v1`; errors before the first byte are thrown
 * to the server's error handler.
 */
export function chatRoutes(deps: ChatDeps): FastifyPluginAsync {
  const {
    pipeline,
    idempotency,
    payments = NO_PAYMENTS,
    config,
    speakers = () => NO_SPEAKERS,
    toolLoop = null,
    now,
    onError,
    keepAliveMs = KEEP_ALIVE_MS,
  } = deps;
  const { limits } = config;
  const schema = chatSchema(limits.messagesMax);
  const check = createCheck<ChatBody>(schema);
  const keepAlive = createKeepAlive(keepAliveMs);
  const chooseChat = createOpenChat({ pipeline, config, speakers, toolLoop });

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
          summary: 'Create a chat completion',
          operationId: 'createChatCompletion',
          description:
            'Routes the conversation to a provider of the model, locks the estimated cost, and settles by actual use. ' +
            'With `stream` the answer is `text/event-stream`: `data:` frames with `choices[].delta`, the last of which carries `finish_reason` and `usage`, then `data: [DONE]`. ' +
            'Fields of the published chat API and the usual sampling extensions that are not listed here are passed to the provider untouched, others to providers ' +
            'that list them; the header `x-tollgate-dropped` names those that were not passed on. ' +
            '`a2a/<agent>` and `mcp/<service>/<tool>` in the place of a model ask an agent or a tool, at its own price. ' +
            'Tools of type `mcp` are called by the gateway itself: `usage.cost` is then the sum of all calls, which `usage.cost_details.children` lists.' +
            (payments.open ? PAYABLE : ''),
          tags: ['Chat'],
          consumes: ['application/json'],
          body: schema,
          response: { 200: chatAnswerSchema },
        },
        // The body is bytes until the handler parses it, which checks it against the same schema.
        validatorCompiler: () => () => true,
      },
      async (request, reply) => {
        refuseEncoding(request.headers['content-encoding']);
        const bytes = request.body ?? EMPTY;
        const parsed = await readJson(bytes, limits);
        refuseLookAlikes(parsed);
        const body = withMaxCost(check(withModel(parsed)), request.headers['x-max-cost']);
        refusePlugins(body);
        if (config.webhooks?.allowPrivate === false) refusePrivateMedia(body);
        const ownKey = idempotencyKeyIn(request.headers);
        const payment = payments.open
          ? readPayment(request.headers, () => keyedRequest(hash('sha256', bytes), ownKey))
          : null;
        const { caller: admitted } = admissionOf(request);
        const caller = payment === null ? admitted : await paidCaller(payments, admitted, payment);
        const options = { keepAlive, onError: (error: unknown) => onError(error, request) };
        const open = chooseChat(
          body,
          {
            caller,
            payment,
            requestId: request.id,
            headers: request.headers,
            now: now(),
            replyBytesMax: config.upstream.replyBytesMax,
            receipts: config.billing.receipts,
          },
          options.onError,
        );
        const callId = newCallId();
        const gone = new AbortController();
        const run = async (sink: ReplySink) => {
          const opened = await open(callId, gone.signal);
          try {
            return await writeChatReply(opened, paidSink(sink, payment), options);
          } catch (error) {
            throw ofGeneration(toGatewayError(error), opened.about.id);
          }
        };
        const key = keyOf(caller, payment, ownKey);
        try {
          if (key === null) await run(createHttpSink(reply, limits.clientStallMs, () => gone.abort()));
          else {
            // What was answered before is answered again whether or not it could be run now, so nothing is chosen
            // before the key is looked at.
            const use = {
              account: caller.account,
              key,
              callId,
              bodyHash: hash('sha256', bytes),
              allowedServices: caller.key?.allowedServices ?? null,
            };
            await answerOnce(
              idempotency,
              use,
              createHttpSink(reply, limits.clientStallMs, () => {}),
              run,
            );
          }
        } catch (error) {
          tellPayment(reply, payment);
          const url = publicAddress(request, config.publicUrl ?? null);
          const description = `A chat completion by ${printable(body.model, MODEL_CHARS_MAX)}`;
          throw await withTerms(payments, error, {
            caller,
            resource: (missing) => ({
              url,
              description: `${description}, at most ${formatUsd(missing)} USDC more`,
              mimeType: 'application/json',
            }),
          });
        }
        // The client left before the head: there is nobody to answer.
        if (!reply.sent) reply.hijack();
      },
    );
  };
}

const EMPTY = Buffer.alloc(0);
const PAYABLE =
  ' What the balance does not reach for is answered with 402 and the terms of x402 (version 2) in `PAYMENT-REQUIRED`: the same request with a payment in `PAYMENT-SIGNATURE` ' +
  'is answered, from whoever has no account too.';
const MODEL_CHARS_MAX = 128;
const NO_SPEAKERS: Partial<Speakers> = {};

/**
 * The idempotency key as it is kept; null for none. Who comes without an account has none to keep it in, unless the
 * request is paid for: then that is its key.
 */
function keyOf(caller: Caller, payment: PaymentSlip | null, key: string | null): string | null {
  if (caller.anonymous) return null;
  if (key !== null) return ownIdempotencyKey(caller, key);
  return caller.paying && payment ? paymentKey(payment) : null;
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
