import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { actedOn, createHttpSink, GatewayError, lookAlikeAt, printable, readJson } from '#wire';
import { formatUsd } from '#billing/amounts';
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
  openCall,
  type OpenedCall,
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
  tellPayment,
  withModel,
} from '#gateway';
import { requireAdmission } from '#auth';
import type { Blobs, Tasks } from '#tasks';
import { answerError, compressed, PAYABLE } from '../../media-error.ts';
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
  readonly blobs: Pick<Blobs, 'admit'>;
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
interface VideoRequest {
  readonly body: VideoBody;
  readonly caller: Caller;
  readonly payment: PaymentSlip | null;
  /** The idempotency key; null for none. */
  readonly key: string | null;
  /** SHA-256 of the body. */
  readonly bodyHash: () => string;
}

/** Pictures come in base64. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
const EMPTY = Buffer.alloc(0);
const MODEL_CHARS_MAX = 128;
const FORM = 'multipart/form-data';

/** `POST /video/queue`, and the same in the shape of OpenAI's API: `POST /videos`. Register it under `/api/v1`. */
export function queueRoutes(deps: QueueDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config, tasks, blobs } = deps;
  const { limits, billing, media, webhooks } = config;
  const serve = createServe({ idempotency: deps.idempotency, payments });
  const making: MakeVideosDeps = { tasks, ttlMs: media.videoTtlMs, callbacks: deps.callbacks };

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
      async write(opened, kept) {
        if (!kept) {
          await writeBegun(opened, door, paidSink(client, payment), onError);
          return null;
        }
        const { sink, reply: whole, end } = recordReply(client);
        const charged = await writeBegun(opened, door, paidSink(sink, payment), onError);
        return { kept: whole, charged, end };
      },
      replay({ status, headers, body: bytes }) {
        client.head(status, { ...headers, 'idempotent-replayed': 'true' });
        client.end(bytes);
      },
      refuse: async (refusal) => {
        throw await refused(refusal, ask.n, body.model, publicAddress(request, config.publicUrl));
      },
    };
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: BODY_BYTES_MAX } as const;
    for (const type of ['application/json', /^application\/[\w.-]+\+json(?:;|$)/i, FORM])
      app.addContentTypeParser(type, keep, (_request, body, done) => done(null, body));

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
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding !== '' && encoding !== 'identity') throw compressed();
    const type = headers['content-type'] ?? '';
    const isForm = type.startsWith(FORM);
    if (isForm && !door.forms) throw new GatewayError('invalid_request', 'Send the body as application/json');
    const read = isForm ? readForm(bytes, type, door.fields) : await readJson(bytes, limits);
    const parsed = withModel(withOwnVideoNames(read, known));
    const fault = typeof parsed === 'object' && parsed !== null ? lookAlikeAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    const body = withOwnVideoNames(check(parsed), new Set()) as VideoBody;
    const own = headers['idempotency-key'];
    const ownKey = own === undefined ? null : parseIdempotencyKey(own);
    // The same body means another answer at the other door. A form is written differently each time.
    const said = () => (isForm ? hash('sha256', JSON.stringify(read)) : hash('sha256', bytes));
    const bodyHash = () => hash('sha256', `${door.path} ${said()}`);
    const payment = payments.open ? readPayment(headers, () => keyedRequest(bodyHash(), ownKey)) : null;
    const caller = payment === null ? admitted : await paidCaller(payments, admitted, payment);
    return { body, caller, payment, key: requestKey(caller, payment, ownKey), bodyHash };
  };
}

/** The error of a request that was refused for want of money: with terms where it can be paid. */
async function refused(
  { error, payable, amount, terms }: Refusal,
  n: number,
  model: string,
  url: string,
): Promise<GatewayError> {
  if (!payable) return error;
  const videos = n === 1 ? 'A video' : `${n} videos`;
  const description = `${videos} by ${printable(model, MODEL_CHARS_MAX)}, at most ${formatUsd(amount)} USDC more`;
  return errorWithTerms(error, await terms({ url, description, mimeType: 'application/json' }));
}
