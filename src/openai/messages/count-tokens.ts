import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Caller, limitedAs, rateLimitError, type RatePolicy } from '#gateway';
import { refuseRepeatedCredentials } from '#auth';
import { tokensOf } from '../caps/tokens-of.ts';
import { measurePrompt } from '../request/prompt-size.ts';
import { answerError, type ChatWire, createReadBody } from '../translated/translated-door.ts';
import type { MessagesDeps } from './messages-routes.ts';
import { type MessagesBody, messagesSchema } from './messages-schema.ts';

/** Coding agents ask for some 30 counts at once, which should not use up the requests of their key. */
const POLICY: RatePolicy = { requestsPerMinute: 600, burst: 0, tokensPerMinute: Number.MAX_SAFE_INTEGER };

const TOKENS_PER_MESSAGE = 16;
/** An image of a million pixels. */
const TOKENS_PER_IMAGE = 1_400;

/** `POST /messages/count_tokens`: an estimate that is made here. It is free, and asks no provider. */
export function addCountRoute(
  app: FastifyInstance,
  { pipeline, config, limiter, onError, ...deps }: MessagesDeps,
  wire: ChatWire<MessagesBody>,
): void {
  const schema = messagesSchema(config.limits.messagesMax, true);
  const readBody = createReadBody<MessagesBody>(config.limits, schema);
  const speakers = deps.speakers ?? (() => ({}));
  const callers = new WeakMap<FastifyRequest, Caller>();

  /** Before the body is read, as at every address. Throws GatewayError. */
  async function admit(request: FastifyRequest): Promise<void> {
    refuseRepeatedCredentials(request.raw.rawHeaders);
    const caller = await pipeline.visitor(request.headers, request.ip);
    // Who has no credential, or a wrong one, is told so as at every other address.
    if (caller.anonymous) return void callers.set(request, (await pipeline.admit(request.headers, request.ip)).caller);
    const rate = await limiter.take(`count:${limitedAs(caller)}`, POLICY, { requests: 1, tokens: 0 });
    if (!rate.allowed) throw rateLimitError(rate);
    callers.set(request, caller);
  }

  app.post<{ Body: Buffer | undefined }>(
    '/messages/count_tokens',
    {
      bodyLimit: config.limits.chatBodyBytesMax,
      schema: {
        summary: 'Count the tokens of a message',
        operationId: 'countMessageTokens',
        description:
          'About how many tokens the prompt of a message has: a token for four bytes of text, 16 for each message, 1,400 for an image. Free.',
        tags: ['Models'],
        consumes: ['application/json'],
        body: schema,
        response: {
          200: {
            type: 'object',
            required: ['input_tokens'],
            properties: { input_tokens: { type: 'integer', description: 'Tokens.' } },
          },
        },
      },
      validatorCompiler: () => () => true,
      onRequest: admit,
      errorHandler: answerError({ onError }, wire),
    },
    async (request, reply) => {
      const asked = await readBody(request.body, request.headers);
      const { body } = wire.translate(asked, {
        caller: callers.get(request)!,
        requestId: request.id,
        headers: request.headers,
        host: request.host,
        now: deps.now(),
        speakers: speakers(),
      });
      const { bytes, messages, images } = measurePrompt(body);
      void reply.header('request-id', request.id);
      return { input_tokens: tokensOf(bytes) + messages * TOKENS_PER_MESSAGE + images * TOKENS_PER_IMAGE };
    },
  );
}
