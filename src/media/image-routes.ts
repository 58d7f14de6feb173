import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { actedOn, createHttpSink, GatewayError, lookAlikeAt, printable, readJson } from '#wire';
import { formatUsd } from '#billing/amounts';
import type { Config } from '#config';
import {
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
  readPayment,
  recordReply,
  type Refusal,
  requestKey,
  tellPayment,
  withModel,
} from '#gateway';
import { requireAdmission } from '#auth';
import { type ImageCall, imageToCall } from './image-to-call.ts';
import { type ImageDoor, IMAGE_DOORS } from './image-doors.ts';
import { answerError, compressed, PAYABLE } from './media-error.ts';
import { type ImageBody, withOwnNames } from './request/image-ask.ts';
import { writeImages } from './write-images.ts';

interface ImageDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing' | 'publicUrl'>;
  /** Told of errors of ours, and of calls that fail after their client left. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** A request as it was read, before anything is looked up. */
interface ImageRequest {
  readonly body: ImageBody;
  readonly caller: Caller;
  readonly payment: PaymentSlip | null;
  /** The idempotency key; null for none. */
  readonly key: string | null;
  /** SHA-256 of the body. */
  readonly bodyHash: () => string;
}

/**
 * `POST /image/generate`, and the same in the shape of OpenAI's API: `POST /images/generations`. Register it under
 * `/api/v1`.
 */
export function imageRoutes(deps: ImageDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  const serve = createServe({ idempotency: deps.idempotency, payments });

  /** A request as `serve` answers it. */
  function asked(
    request: FastifyRequest,
    reply: FastifyReply,
    door: ImageDoor,
    { body, caller, payment, key, bodyHash }: ImageRequest,
    { request: callRequest, ask }: ImageCall,
  ): Asked<OpenedCall> {
    const gone = new AbortController();
    const client = createHttpSink(reply, limits.clientStallMs, () => gone.abort());
    const answer = door.answerOf(body);
    const onError = (error: unknown) => deps.onError(error, request);
    return {
      caller,
      repeats: key === null ? null : { key, bodyHash: bodyHash() },
      gone: gone.signal,
      open: (callId, left) => openCall(pipeline, callRequest, callId, left),
      async write(opened, kept) {
        if (!kept) {
          await writeImages(opened, ask.seed, answer, paidSink(client, payment), onError);
          return null;
        }
        const { sink, reply: whole, end } = recordReply(client);
        const charged = await writeImages(opened, ask.seed, answer, paidSink(sink, payment), onError);
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
    const keep = { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax } as const;
    app.addContentTypeParser('application/json', keep, (_request, body, done) => done(null, body));
    app.addContentTypeParser(/^application\/[\w.-]+\+json(?:;|$)/i, keep, (_request, body, done) => done(null, body));

    for (const door of IMAGE_DOORS) {
      const read = createReadImage(payments, config, door);
      app.post<{ Body: Buffer | undefined }>(
        door.path,
        {
          schema: {
            ...door.described,
            description: door.described.description + (payments.open ? PAYABLE : ''),
            tags: ['Images'],
            consumes: ['application/json'],
            body: door.schema,
            response: { 200: door.answerSchema },
          },
          // The body is bytes until the handler parses it, which checks it against the same schema.
          validatorCompiler: () => () => true,
          ...(door.ownErrors ? { errorHandler: answerError(deps.onError) } : {}),
        },
        async (request, reply) => {
          const image = await read(request.body ?? EMPTY, request.headers, admissionOf(request).caller);
          try {
            const call = imageToCall(image.body, {
              ...image,
              requestId: request.id,
              headers: request.headers,
              replyBytesMax: upstream.imagesReplyBytesMax,
              receipts: billing.receipts,
            });
            await serve(asked(request, reply, door, image, call));
          } catch (error) {
            tellPayment(reply, image.payment);
            throw error;
          }
          // The client left before the head: there is nobody to answer.
          if (!reply.sent) reply.hijack();
        },
      );
    }
  };
}

type ReadImage = (bytes: Buffer, headers: IncomingHttpHeaders, admitted: Caller) => Promise<ImageRequest>;

/** Reads and checks a request. It throws GatewayError for what is wrong with it. */
function createReadImage(payments: Payments, { limits }: ImageDeps['config'], door: ImageDoor): ReadImage {
  const check = createCheck<ImageBody>(door.schema);
  const names = actedOn(Object.keys(door.schema.properties));
  return async (bytes, headers, admitted) => {
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding !== '' && encoding !== 'identity') throw compressed();
    const parsed = withModel(withOwnNames(await readJson(bytes, limits)));
    const fault = typeof parsed === 'object' && parsed !== null ? lookAlikeAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    const body = check(parsed);
    door.refuse?.(body);
    const own = headers['idempotency-key'];
    const ownKey = own === undefined ? null : parseIdempotencyKey(own);
    // The same body means another answer at the other door.
    const bodyHash = () => hash('sha256', `${door.path} ${hash('sha256', bytes)}`);
    const payment = payments.open ? readPayment(headers, () => keyedRequest(bodyHash(), ownKey)) : null;
    const caller = payment === null ? admitted : await paidCaller(payments, admitted, payment);
    return { body, caller, payment, key: requestKey(caller, payment, ownKey), bodyHash };
  };
}

const EMPTY = Buffer.alloc(0);
const MODEL_CHARS_MAX = 128;
/** The error of a request that was refused for want of money: with terms where it can be paid. */
async function refused(
  { error, payable, amount, terms }: Refusal,
  n: number,
  model: string,
  url: string,
): Promise<GatewayError> {
  if (!payable) return error;
  const images = n === 1 ? 'An image' : `${n} images`;
  const description = `${images} by ${printable(model, MODEL_CHARS_MAX)}, at most ${formatUsd(amount)} USDC more`;
  return errorWithTerms(error, await terms({ url, description, mimeType: 'application/json' }));
}
