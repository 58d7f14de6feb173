import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '#config';
import type { Caller } from '#accounts';
import { type CallRequest, type ProviderAdapter, type Quotable, quoteSchema, type QuoteView } from '#call';
import { NO_PAYMENTS } from '#payments';
import { MEDIA_ERROR } from '#http/error-schemas';
import type { MediaErrors } from '../../media-error.ts';
import { toVideoAsk } from '../request/video-ask.ts';
import { queueFields, VIDEO_RULES, videoBodySchema } from '../request/video-fields.ts';
import { createReadVideo, videoToCall } from './video-request.ts';

type QuoteConfig = Pick<Config, 'limits' | 'billing' | 'webhooks'>;

interface VideoQuoteDeps {
  readonly config: QuoteConfig;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
}

const ROUTE = {
  path: '/video/quote',
  fields: queueFields,
  schema: videoBodySchema('VideoQuoteRequest', queueFields, { model: 'demo/video', duration: '2s' }, VIDEO_RULES, [
    'duration',
  ]),
};

/** A call for a quote is prepared, but never run. */
const NOT_RUN: ProviderAdapter<never, never> = {
  begin() {},
  // oxlint-disable-next-line require-yield -- it is never asked
  async *startAttempt() {
    throw new Error('a quote is not run');
  },
};

/** Reads a quote request for videos. Its body is that of the call, but may leave out the prompt. */
function createQuotable({ limits, billing, webhooks }: QuoteConfig) {
  const read = createReadVideo(NO_PAYMENTS, limits, ROUTE);
  return async (
    bytes: Buffer,
    { caller, requestId, headers }: Parameters<Quotable>[1],
    readHeaders: typeof headers,
  ): Promise<CallRequest> => {
    const { body, parts, names } = await read(bytes, readHeaders, caller);
    const ask = await toVideoAsk(body, caller.account, webhooks.allowPrivate, { quotes: true, parts, names });
    const { receipts } = billing;
    return videoToCall(body, ask, NOT_RUN, { caller, payment: null, requestId, headers, receipts });
  };
}

export function quotableVideos(config: QuoteConfig): Quotable {
  const quotable = createQuotable(config);
  return (body, context) => quotable(Buffer.from(JSON.stringify(body)), context, {});
}

const EMPTY = Buffer.alloc(0);

export function addVideoQuote(
  app: FastifyInstance,
  { config, quote }: VideoQuoteDeps,
  callerOf: (request: FastifyRequest) => Caller,
  errors: MediaErrors,
): void {
  const quotable = createQuotable(config);
  app.post<{ Body: Buffer | undefined }>(
    ROUTE.path,
    {
      schema: {
        summary: 'Quote videos',
        operationId: 'quoteVideos',
        description:
          'What a call of `/video/queue` costs. The quote is binding: a call with it as `quote_id` costs `price_usd`, even if the price has risen. It is for one call of this account. The body is the body of the call; the prompt may be omitted.',
        tags: ['Account'],
        consumes: ['application/json'],
        body: ROUTE.schema,
        response: { 200: quoteSchema, default: MEDIA_ERROR },
      },
      // The body is still bytes here. The handler parses it and checks it against the same schema.
      validatorCompiler: () => () => true,
      ...errors,
    },
    async (request, reply) => {
      const { headers } = request;
      const context = { caller: callerOf(request), requestId: request.id, headers };
      return reply.send(await quote({ ...(await quotable(request.body ?? EMPTY, context, headers)), quote: null }));
    },
  );
}
