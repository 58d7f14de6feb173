import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { createHttpSink, dialectOf, toHttpError, clientNetworkOf } from '#http';
import type { GatewayError } from '#errors';
import type { Config } from '#config';
import { type Admission, rateHeaders } from '#limits';
import {
  type PendingRequest,
  type CallRequest,
  createHandlePaidRequest,
  type Idempotency,
  openCall,
  type StartedProviderCall,
  type Pipeline,
  type Quotes,
  type QuoteView,
  answersOn,
  PAYABLE,
  refusedWithTerms,
  takeBytes,
  bodyFrom,
  servedRequest,
  singleRequest,
} from '#gateway';
import { NO_PAYMENTS, receiptSink, type Payments, tellPayment } from '#payments';
import { requireAdmission } from '#auth';
import { MEDIA_ERROR } from '#pages';
import { type Blobs, createKeptReplies } from '#blobs';
import { type ImageCall, imageToCall, createReadImage, type ImageRequest } from './image-request.ts';
import { addImageQuotes } from './image-quotes.ts';
import { type ImageRoute, IMAGE_ROUTES, imageAnswerOf } from './image-route-list.ts';
import { mediaErrors, toMediaError } from './media-error.ts';
import type { ImagesResult } from './reply/image-reader.ts';
import { bodyOrForm } from './request/form.ts';
import type { FetchInputs } from './request/input-images.ts';
import { writeImages, writeStream } from './write-images.ts';

interface ImageDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  readonly quotes: Quotes;
  readonly blobs: Pick<Blobs, 'write' | 'find' | 'read'>;
  /** See quoteCall of the gateway. */
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  /** Fetches an image to edit from an untrusted URL. */
  readonly fetchInputs: FetchInputs;
  /** Gets internal errors, and failures of calls whose client has left. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/**
 * `POST /image/generate` and `POST /image/edit`, and the same in the shape of OpenAI's API:
 * `POST /images/generations` and `POST /images/edits`. Register it under `/api/v1`.
 */
export function imageRoutes(deps: ImageDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  const kept = createKeptReplies(deps.blobs, upstream.imagesReplyBytesMax);
  const handlePaidRequest = createHandlePaidRequest({ idempotency: deps.idempotency, payments, quotes: deps.quotes });

  /** A request in the form that `handlePaidRequest` takes. */
  function asked(
    request: FastifyRequest,
    reply: FastifyReply,
    route: ImageRoute,
    { rate }: Admission,
    { body, edit, caller, payment, repeats }: ImageRequest,
    { request: callRequest, ask }: ImageCall<ImagesResult, Uint8Array>,
  ): PendingRequest<StartedProviderCall<ImagesResult>> {
    const gone = new AbortController();
    const client = createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(rate),
    );
    const answer = route.answerOf(body);
    const errorBody = (error: GatewayError) =>
      (route.ownErrors ? toMediaError(error) : toHttpError(error, route.streamDialect ?? dialectOf(request))).body;
    const onError = (error: unknown) => deps.onError(error, request);
    return {
      caller,
      repeats:
        repeats === null
          ? null
          : {
              ...repeats,
              taken: (by) => kept.repeat(caller.account, by, client),
            },
      ...servedRequest(request),
      gone: gone.signal,
      async open(callId, left) {
        // A caller without a credential gets the terms of a payment, so nothing is fetched for this caller.
        if (edit !== null && !caller.anonymous) await edit.load();
        return openCall(pipeline, callRequest, callId, left);
      },
      ...answersOn<StartedProviderCall<ImagesResult>>(
        client,
        (opened, to) => {
          const { stream } = ask;
          const sink = receiptSink(to, payment);
          return stream === null
            ? writeImages(opened, ask, answer, sink, onError)
            : writeStream(opened, { stream, seed: ask.seed, usage: route.usage, errorBody, onError }, sink);
        },
        {
          bytesMax: kept.bytesMax,
          keep: ({ id }, head, chunks) => kept.keep(caller.account, id, head, chunks).catch(onError),
        },
      ),
      refuse: async (refusal) => {
        const images = ask.n === 1 ? 'An image' : `${ask.n} images`;
        throw await refusedWithTerms(refusal, images, body.model, request);
      },
    };
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.mediaBodyBytesMax, 1, /^multipart\/form-data(?:;|$)/i);
    const ownErrors = mediaErrors(deps.onError, '/image');
    addImageQuotes(app, deps, (request) => admissionOf(request).caller, ownErrors);
    for (const route of IMAGE_ROUTES) {
      const read = createReadImage({ payments, limits, fetchInputs: deps.fetchInputs }, route);
      app.post<{ Body: Buffer | undefined }>(
        route.path,
        {
          bodyLimit: route.edits ? limits.mediaBodyBytesMax : limits.bodyBytesMax,
          schema: {
            ...route.described,
            description: route.described.description + (payments.open ? PAYABLE : ''),
            tags: ['Images'],
            ...bodyOrForm(route),
            response: {
              200: imageAnswerOf(route.answerSchema, route.ownErrors === true),
              ...(route.ownErrors ? { default: MEDIA_ERROR } : {}),
            },
          },
          // The body is still bytes here. The handler parses it and checks it against the same schema.
          validatorCompiler: () => () => true,
          ...(route.ownErrors ? ownErrors : {}),
        },
        async (request, reply) => {
          const admission = admissionOf(request);
          const image = await read(bodyFrom(request), request.headers, admission.caller, clientNetworkOf(request));
          try {
            const context = {
              ...image,
              events: route.events,
              requestId: request.id,
              headers: request.headers,
              replyBytesMax: upstream.imagesReplyBytesMax,
              receipts: billing.receipts,
            };
            const call = imageToCall(image.body, context, singleRequest);
            await handlePaidRequest(asked(request, reply, route, admission, image, call));
          } catch (error) {
            tellPayment(reply, image.payment);
            throw error;
          }
          // The client left before the head was sent, so nothing is left to answer.
          if (!reply.sent) reply.hijack();
        },
      );
    }
  };
}
