import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '#config';
import type { Caller } from '#accounts';
import { type CallRequest, quoteSchema, type QuoteView, type Quotable, singleRequest } from '#call';
import { NO_PAYMENTS } from '#payments';
import { MEDIA_ERROR } from '#http/error-schemas';
import type { ImageRoute } from './image-route-list.ts';
import { imageToCall, createReadImage, type ReadRoute } from './image-request.ts';
import type { MediaErrors } from './media-error.ts';
import { bodySchema, editQuoteFields, generateQuoteFields } from './request/image-fields.ts';

interface ImageQuoteDeps {
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
}

interface QuoteRoute extends ReadRoute {
  readonly described: ImageRoute['described'];
}

const BINDING =
  ' The quote is binding: a call with it as `quote_id` costs `price_usd`, even if the price has risen. It is for one call of this account. The body is the body of the call; the prompt and images may be omitted.';

const QUOTE_ROUTES: readonly QuoteRoute[] = [
  {
    path: '/image/generate/quote',
    schema: bodySchema('ImageQuoteRequest', generateQuoteFields, []),
    described: {
      summary: 'Quote images',
      operationId: 'quoteGenerateImages',
      description: `What a call of \`/image/generate\` costs.${BINDING}`,
    },
    editsAt: '/image/edit/quote',
    quotes: true,
  },
  {
    path: '/image/edit/quote',
    schema: bodySchema('ImageEditQuoteRequest', editQuoteFields, []),
    described: {
      summary: 'Quote an edit of images',
      operationId: 'quoteEditImages',
      description: `What a call of \`/image/edit\` costs.${BINDING}`,
    },
    edits: true,
    quotes: true,
  },
];

type QuoteConfig = Pick<Config, 'limits' | 'upstream' | 'billing'>;

/** Reads a quote request for images and turns it into a call. Its body may leave out the prompt and the images. */
function createQuotable({ limits, upstream, billing }: QuoteConfig, route: QuoteRoute) {
  const fetchInputs = () => {
    throw new Error('nothing is fetched for a quote');
  };
  const read = createReadImage({ payments: NO_PAYMENTS, limits, fetchInputs }, route);
  return async (
    bytes: Buffer,
    { caller, requestId, headers }: Parameters<Quotable>[1],
    readHeaders: typeof headers,
  ): Promise<CallRequest> => {
    const image = await read(bytes, readHeaders, caller, null);
    const context = {
      ...image,
      events: { prefix: 'image_generation', partialImages: 2 },
      requestId,
      headers,
      replyBytesMax: upstream.imagesReplyBytesMax,
      receipts: billing.receipts,
    } as const;
    return imageToCall(image.body, context, singleRequest).request;
  };
}

/** Turns a quote request for images into a call. A body with `images`, `image` or `image_count` is an edit. */
export function quotableImages(config: QuoteConfig): Quotable {
  const [generate, edit] = QUOTE_ROUTES.map((route) => createQuotable(config, route));
  return (body, context) => {
    const edits = ['images', 'image', 'image_count'].some((name) => Object.hasOwn(body, name));
    return (edits ? edit! : generate!)(Buffer.from(JSON.stringify(body)), context, {});
  };
}

const EMPTY = Buffer.alloc(0);

export function addImageQuotes(
  app: FastifyInstance,
  { config, quote }: ImageQuoteDeps,
  callerOf: (request: FastifyRequest) => Caller,
  errors: MediaErrors,
): void {
  const { limits } = config;
  for (const route of QUOTE_ROUTES) {
    const quotable = createQuotable(config, route);
    app.post<{ Body: Buffer | undefined }>(
      route.path,
      {
        bodyLimit: route.edits ? limits.mediaBodyBytesMax : limits.bodyBytesMax,
        schema: {
          ...route.described,
          tags: ['Account'],
          consumes: ['application/json'],
          body: route.schema,
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
}
