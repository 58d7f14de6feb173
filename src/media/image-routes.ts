import type { FastifyPluginAsync } from 'fastify';
import { bodyOrForm, dialectOf, toHttpError, clientNetworkOf } from '#http';
import { MEDIA_ERROR } from '#http/error-schemas';
import type { GatewayError } from '#errors';
import type { Config } from '#config';
import {
  addPaidRoute,
  bodyFrom,
  type CallRequest,
  type Idempotency,
  openCall,
  type PaidAnswer,
  type PaidContext,
  type PaidRouteDeps,
  type Pipeline,
  type Quotes,
  type QuoteView,
  singleRequest,
  type StartedProviderCall,
  takeBytes,
} from '#call';
import { NO_PAYMENTS, type Payments } from '#payments';
import { requireAdmission } from '#auth';
import { type Blobs, createKeptReplies } from '#files';
import { imageToCall, createReadImage, type ImageRequest } from './image-request.ts';
import { addImageQuotes } from './image-quotes.ts';
import { type ImageRoute, IMAGE_ROUTES, imageAnswerOf } from './image-route-list.ts';
import { mediaErrors, toMediaError } from './media-error.ts';
import type { ImagesResult } from './reply/image-reader.ts';
import type { FetchInputs } from './request/input-images.ts';
import { writeImages, writeStream } from './write-images.ts';

interface ImageDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  readonly quotes: Quotes;
  readonly blobs: Pick<Blobs, 'write' | 'find' | 'read'>;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  readonly fetchInputs: FetchInputs;
  readonly onError: PaidRouteDeps['onError'];
}

/**
 * `POST /image/generate` and `POST /image/edit`, and the same in the shape of OpenAI's API:
 * `POST /images/generations` and `POST /images/edits`. Register it under `/api/v1`.
 */
export function imageRoutes(deps: ImageDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  const replies = createKeptReplies(deps.blobs, upstream.imagesReplyBytesMax);

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.mediaBodyBytesMax, 1, /^multipart\/form-data(?:;|$)/i);
    const ownErrors = mediaErrors(deps.onError, '/image');
    addImageQuotes(app, deps, (request) => admissionOf(request).caller, ownErrors);
    const { idempotency, quotes, onError } = deps;
    const paid: PaidRouteDeps = { admissionOf, idempotency, payments, quotes, limits, onError };
    for (const route of IMAGE_ROUTES) {
      const read = createReadImage({ payments, limits, fetchInputs: deps.fetchInputs }, route);
      addPaidRoute<ImageRequest, StartedProviderCall<ImagesResult, Uint8Array>>(app, paid, {
        path: route.path,
        options: {
          bodyLimit: route.edits ? limits.mediaBodyBytesMax : limits.bodyBytesMax,
          schema: {
            ...route.described,
            tags: ['Images'],
            ...bodyOrForm(route),
            response: {
              200: imageAnswerOf(route.answerSchema, route.ownErrors === true),
              ...(route.ownErrors ? { default: MEDIA_ERROR } : {}),
            },
          },
          ...(route.ownErrors ? ownErrors : {}),
          ...(route.clientsAppend ? { config: { clientsAppend: true } } : {}),
        },
        decode: (request, admitted) => read(bodyFrom(request), request.headers, admitted, clientNetworkOf(request)),
        answer: (image, context) => answerOf(route, image, context),
      });
    }
  };

  function answerOf(
    route: ImageRoute,
    image: ImageRequest,
    { request, client, onError }: PaidContext,
  ): PaidAnswer<StartedProviderCall<ImagesResult, Uint8Array>> {
    const { body, edit, caller } = image;
    const context = {
      ...image,
      events: route.events,
      requestId: request.id,
      headers: request.headers,
      replyBytesMax: upstream.imagesReplyBytesMax,
      receipts: billing.receipts,
    };
    const { request: callRequest, ask } = imageToCall(image.body, context, singleRequest);
    const { stream, seed, n } = ask;
    const dialect = dialectOf(request);
    const toHttp = (error: GatewayError) => (route.ownErrors ? toMediaError(error) : toHttpError(error, dialect));
    const errorBody = (error: GatewayError) =>
      (route.ownErrors ? toMediaError(error) : toHttpError(error, route.streamDialect ?? dialect)).body;
    return {
      noun: n === 1 ? 'An image' : `${n} images`,
      model: body.model,
      async open(callId, gone) {
        // A caller without a credential gets the terms of a payment, so nothing is fetched for this caller.
        if (edit !== null && !caller.anonymous) {
          // Nor is it for one that cannot pay for the call.
          await pipeline.shareOf(callRequest);
          await edit.load();
        }
        return openCall(pipeline, callRequest, callId, gone);
      },
      write: (call, sink) =>
        stream === null
          ? writeImages(call, ask, route.answerOf(body), sink, { toHttp, onError })
          : writeStream(call, { stream, seed, usage: route.usage, toHttp, errorBody, onError }, sink),
      takeKey: (key) => replies.repeat(caller.account, key, client),
      largeAnswers: {
        bytesMax: replies.bytesMax,
        keep: ({ id }, head, chunks) => replies.keep(caller.account, id, head, chunks).catch(onError),
      },
    };
  }
}
