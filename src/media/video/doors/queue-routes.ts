import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { actedOn, createHttpSink, GatewayError, lookAlikeAt, readJson } from '#wire';
import type { Config } from '#config';
import {
  type Admission,
  type Asked,
  type Caller,
  createCheck,
  createServe,
  type Idempotency,
  NO_PAYMENTS,
  openCall,
  type OpenedCall,
  paidSink,
  type Payments,
  type Pipeline,
  publicAddress,
  rateHeaders,
  tellPayment,
  withModel,
  answersOn,
  PAYABLE,
  type Payer,
  payerOf,
  refusedWithTerms,
  refuseEncoding,
  takeBytes,
} from '#gateway';
import { requireAdmission } from '#auth';
import type { Blobs, Tasks } from '#tasks';
import { answerError } from '../../media-error.ts';
import { toVideoAsk, type VideoBody, withOwnVideoNames } from '../request/video-ask.ts';
import { createMakeVideos, type MakeVideosDeps } from '../run/make-videos.ts';
import { readForm } from './read-form.ts';
import { VIDEO_DOORS, type VideoDoor } from './video-doors.ts';
import { videoToCall } from './video-to-call.ts';
import { writeBegun } from './write-begun.ts';

export interface QueueDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  readonly tasks: Pick<Tasks, 'admit' | 'begin'>;
  readonly blobs: Pick<Blobs, 'admit' | 'takeRoom' | 'giveRoomBack'>;
  readonly now: () => number;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'billing' | 'publicUrl' | 'media' | 'webhooks'>;
  readonly callbacks: MakeVideosDeps['callbacks'];
  /** Told of errors of ours. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** A request as it was read, before anything is looked up. */
interface VideoRequest extends Payer {
  readonly body: VideoBody;
}

/** Pictures come in base64. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
const EMPTY = Buffer.alloc(0);
const FORM = 'multipart/form-data';

/** `POST /video/queue`, and the same in the shape of OpenAI's API: `POST /videos`. Register it under `/api/v1`. */
export function queueRoutes(deps: QueueDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config, tasks, blobs } = deps;
  const { limits, billing, media, webhooks } = config;
  const serve = createServe({ idempotency: deps.idempotency, payments });
  const making: MakeVideosDeps = { tasks, blobs, now: deps.now, ttlMs: media.videoTtlMs, callbacks: deps.callbacks };

  /** A request as `serve` answers it. */
  function asked(
    request: FastifyRequest,
    reply: FastifyReply,
    door: VideoDoor,
    { rate }: Admission,
    { body, caller, payment, key, bodyHash }: VideoRequest,
  ): Asked<OpenedCall> {
    const gone = new AbortController();
    const client = createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(rate),
    );
    const onError = (error: unknown) => deps.onError(error, request);
    const ask = toVideoAsk(body, caller.account, webhooks.allowPrivate);
    const callRequest = videoToCall(body, ask, createMakeVideos(making, ask, request.id), {
      caller,
      payment,
      requestId: request.id,
      headers: request.headers,
      receipts: billing.receipts,
    });
    return {
      caller,
      repeats: key === null ? null : { key, bodyHash: bodyHash() },
      gone: gone.signal,
      async open(callId, left) {
        await tasks.admit(caller.account);
        await blobs.admit(caller.account, ask.n);
        return openCall(pipeline, callRequest, callId, left);
      },
      ...answersOn<OpenedCall>(client, (opened, sink) => writeBegun(opened, door, paidSink(sink, payment), onError)),
      refuse: async (refusal) => {
        const videos = ask.n === 1 ? 'A video' : `${ask.n} videos`;
        throw await refusedWithTerms(refusal, videos, body.model, publicAddress(request, config.publicUrl));
      },
    };
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, BODY_BYTES_MAX, FORM);
    for (const door of VIDEO_DOORS) {
      const read = createReadVideo(payments, limits, door);
      app.post<{ Body: Buffer | undefined }>(
        door.path,
        {
          schema: {
            ...door.described,
            description: door.described.description + (payments.open ? PAYABLE : ''),
            tags: ['Videos'],
            consumes: ['application/json', ...(door.forms ? [FORM] : [])],
            body: door.schema,
            response: { 200: door.answerSchema },
          },
          // The body is bytes until the handler parses it, which checks it against the same schema.
          validatorCompiler: () => () => true,
          ...(door.ownErrors ? { errorHandler: answerError(deps.onError) } : {}),
        },
        async (request, reply) => {
          const admission = admissionOf(request);
          const video = await read(request.body ?? EMPTY, request.headers, admission.caller);
          try {
            await serve(asked(request, reply, door, admission, video));
          } catch (error) {
            tellPayment(reply, video.payment);
            throw error;
          }
          // The client left before the head: there is nobody to answer.
          if (!reply.sent) reply.hijack();
        },
      );
    }
  };
}

type ReadVideo = (bytes: Buffer, headers: IncomingHttpHeaders, admitted: Caller) => Promise<VideoRequest>;

/** Reads and checks a request. It throws GatewayError for what is wrong with it. */
function createReadVideo(payments: Payments, limits: QueueDeps['config']['limits'], door: VideoDoor): ReadVideo {
  const check = createCheck<VideoBody>(door.schema);
  const names = actedOn(Object.keys(door.fields));
  const known = new Set(Object.keys(door.fields));
  return async (bytes, headers, admitted) => {
    refuseEncoding(headers);
    const type = headers['content-type'] ?? '';
    const isForm = type.startsWith(FORM);
    if (isForm && !door.forms) throw new GatewayError('invalid_request', 'Send the body as application/json');
    const read = isForm ? readForm(bytes, type, door.fields) : await readJson(bytes, limits);
    const parsed = withModel(withOwnVideoNames(read, known));
    const fault = typeof parsed === 'object' && parsed !== null ? lookAlikeAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    const body = withOwnVideoNames(check(parsed), new Set()) as VideoBody;
    // The same body means another answer at the other door. A form is written differently each time.
    const said = () => (isForm ? hash('sha256', JSON.stringify(read)) : hash('sha256', bytes));
    const bodyHash = () => hash('sha256', `${door.path} ${said()}`);
    return { body, ...(await payerOf(payments, headers, admitted, bodyHash)) };
  };
}
