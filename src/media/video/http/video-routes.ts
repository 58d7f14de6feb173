import type { FastifyPluginAsync } from 'fastify';
import { bodyOrForm, dialectOf, clientNetworkOf, formSchema } from '#http';
import { MEDIA_ERROR } from '#http/error-schemas';
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
  type StartedProviderCall,
  takeBytes,
} from '#call';
import { NO_PAYMENTS, type Payments } from '#payments';
import { requireAdmission } from '#auth';
import type { Blobs } from '#files';
import type { Tasks } from '#tasks';
import { taskRoutes, type TaskRoutesDeps } from './task-routes.ts';
import { mediaErrors } from '../../media-error.ts';
import { toVideoAsk } from '../request/video-ask.ts';
import { roomForVideos, type BegunVideo, createMakeVideos, type MakeVideosDeps } from '../run/make-videos.ts';
import { addressOfVideo, begunInOpenrouter } from './openrouter-video.ts';
import { addVideoQuote } from './quote-videos.ts';
import { createReadVideo, FORM, type VideoRequest, videoToCall, type VideoRoute } from './video-request.ts';
import { openrouterVideoSchema, writeBegun, queuedSchema, videoSchema, begunVideo } from './video-answers.ts';
import { QUEUE_RULES, queueFields, videoBodySchema, VIDEOS_RULES, videosFields } from '../request/video-fields.ts';

/** All routes of videos. Register it under `/api/v1`. */
export function videoRoutes(deps: QueueDeps & TaskRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    await app.register(queueRoutes(deps));
    await app.register(taskRoutes(deps));
  };
}

interface QueueDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  readonly quotes: Quotes;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
  readonly tasks: Pick<Tasks, 'admit' | 'begin'>;
  readonly blobs: Pick<Blobs, 'admit' | 'takeRoom' | 'giveRoomBack'>;
  readonly now: () => number;
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'billing' | 'media' | 'webhooks'>;
  readonly callbacks: MakeVideosDeps['callbacks'];
  readonly fetchInputs: MakeVideosDeps['fetchInputs'];
  readonly onError: PaidRouteDeps['onError'];
}

/**
 * `POST /video/queue`, the same in the shape of OpenAI's API (`POST /videos`), and `POST /video/quote`. Register it
 * under `/api/v1`.
 */
function queueRoutes(deps: QueueDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config, tasks, blobs } = deps;
  const { limits, billing, media, webhooks } = config;
  const making: MakeVideosDeps = {
    tasks,
    blobs,
    now: deps.now,
    ttlMs: media.videoTtlMs,
    fetchMs: media.downloadTimeoutMs,
    callbacks: deps.callbacks,
    fetchInputs: deps.fetchInputs,
  };

  async function answerOf(
    route: VideoRoute,
    video: VideoRequest,
    { request, onError }: PaidContext,
  ): Promise<PaidAnswer<StartedProviderCall<BegunVideo>>> {
    const { body, caller, payment, openrouter } = video;
    const ask = await toVideoAsk(body, caller.account, webhooks.allowPrivate, video);
    const begunOf = (begun: BegunVideo, created: number) =>
      openrouter && route.inOpenrouter
        ? { status: 202 as const, body: route.inOpenrouter(begun, addressOfVideo(request, begun.id)) }
        : { status: 200 as const, body: route.answerOf(begun, created) };
    const callRequest: CallRequest<BegunVideo, never> = {
      ...videoToCall(
        body,
        ask,
        createMakeVideos(making, ask, { requestId: request.id, network: clientNetworkOf(request), openrouter }),
        {
          caller,
          payment,
          requestId: request.id,
          headers: request.headers,
          receipts: billing.receipts,
        },
      ),
      room: roomForVideos(tasks, blobs, ask),
    };
    return {
      noun: ask.n === 1 ? 'A video' : `${ask.n} videos`,
      model: body.model,
      open: (callId, gone) => openCall(pipeline, callRequest, callId, gone),
      write: (call, sink) => writeBegun(call, begunOf, sink, onError),
    };
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.mediaBodyBytesMax, 1, FORM);
    const ownErrors = mediaErrors(deps.onError, '/video');
    addVideoQuote(app, deps, (request) => admissionOf(request).caller, ownErrors);
    const { idempotency, quotes, onError } = deps;
    const paid: PaidRouteDeps = { admissionOf, idempotency, payments, quotes, limits, onError };
    for (const route of VIDEO_ROUTES) {
      const read = createReadVideo(payments, limits, route);
      addPaidRoute<VideoRequest, StartedProviderCall<BegunVideo>>(app, paid, {
        path: route.path,
        options: {
          schema: {
            ...route.described,
            tags: ['Videos'],
            ...bodyOrForm(route),
            response: {
              200: route.answerSchema,
              ...(route.inOpenrouter ? { 202: openrouterVideoSchema } : {}),
              ...(route.ownErrors ? { default: MEDIA_ERROR } : {}),
            },
          },
          ...(route.ownErrors ? ownErrors : {}),
        },
        decode: (request, admitted) => read(bodyFrom(request), request.headers, admitted, dialectOf(request)),
        answer: (video, context) => answerOf(route, video, context),
      });
    }
  };
}

const BILLED =
  'The price is known before the call: seconds × the price of a second in the resolution, and the base price of each video. It is locked until the videos arrive, and the videos that arrived are charged. ';

const VIDEO_ROUTES: readonly VideoRoute[] = [
  {
    path: '/video/queue',
    fields: queueFields,
    schema: videoBodySchema(
      'VideoRequest',
      queueFields,
      { model: 'demo/video', prompt: 'A tollgate in the morning', duration: '2s' },
      QUEUE_RULES,
      ['duration'],
    ),
    answerSchema: queuedSchema,
    described: {
      summary: 'Queue a video',
      operationId: 'queueVideo',
      description: `Starts making videos from a prompt or a picture. The answer is the id of a task: \`/video/retrieve\` shows how it stands, and gives the file. ${BILLED}A field that no provider of the model takes is refused by its name (422).`,
    },
    ownErrors: true,
    answerOf: ({ id, notes, callbackSecret }, created) => ({
      id,
      created,
      status: 'queued',
      variants_expected: notes.jobs.length,
      ...(callbackSecret === undefined ? {} : { callback_secret: callbackSecret }),
    }),
  },
  {
    path: '/videos',
    fields: videosFields,
    schema: videoBodySchema(
      'OpenAiVideoRequest',
      videosFields,
      { model: 'demo/video', prompt: 'A tollgate in the morning', seconds: '2' },
      VIDEOS_RULES,
    ),
    answerSchema: videoSchema,
    described: {
      summary: 'Queue a video in the shape of OpenAI’s API',
      operationId: 'createVideo',
      description: `The same as \`/video/queue\`, for clients of OpenAI's API. A request with \`duration\`, \`frame_images\` or \`input_references\`, or of a client of OpenRouter's API, is answered in the shape of that API (202), but not below \`/v1\`. ${BILLED}`,
    },
    form: formSchema({
      properties: videosFields,
      required: ['model'],
      files: { input_reference: 'The first frame.' },
      example: { model: 'demo/video', prompt: 'A tollgate in the morning', seconds: '2' },
    }),
    answerOf: (begun, created) => begunVideo(begun, created),
    inOpenrouter: ({ id, key }, address) => begunInOpenrouter(id, key.taskId, address),
  },
];
