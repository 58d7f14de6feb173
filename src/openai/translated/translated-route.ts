import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { after, interpretedFields, type InterpretedFieldsAt, ambiguousKeyAt, readJson } from '#wire';
import { createCheck, createKeepAlive, type MoreMemory, toGatewayError } from '#http';
import { GatewayError, isOfProvider } from '#errors';
import type { CancelSignal } from '#billing/amounts';
import type { Admission } from '#limits';
import { addPaidRoute, bodyFrom, type PaidRoute, type Payer, payerOf, withModel } from '#call';
import type { Caller } from '#accounts';
import { NO_PAYMENTS } from '#payments';
import { createLargeAnswers, type StartedChat, writeChatReply } from '../chat/reply/chat-reply.ts';
import { type ChatDeps, contextOf, createOpenChat, paidRouteDeps } from '../routes/chat-routes.ts';
import { refusePrivateMedia, refusePrivateUrls } from '../chat/request/refusals.ts';
import { withMaxCost } from '../call/chat-to-call.ts';
import type { NativeRequestFacts } from '../native/passthrough.ts';
import { type ClientId, NOTHING } from '../chat/reply/echo-fields.ts';
import { requestDepsOf, type WireDeps, WireRequest } from './wire-request.ts';
import { createTranslatedHeaders, type ReplyHeaders } from '../chat/request/altered-headers.ts';
import { ChunkEvents } from '../stream/chunk-output.ts';
import { createToolCallIds } from '../chat/reply/chat-decoder.ts';
import { createTranslatedEncoder } from './translated-encoder.ts';
import type { Translation, ChatWire } from './chat-wire.ts';
import { refuseKeptAtProvider } from '../native/refuse-kept.ts';
import { asNative, createSpeaks, type RoutedBody } from './as-native.ts';

interface TranslatedRequest extends Payer {
  readonly translation: Translation;
  /** The name that a reply gives the model that answers: the client's own, unless it is another model. */
  readonly modelOf: (service: string | null) => string;
  /** Makes the ids of tool calls for the client. undefined: they are the provider's ids. */
  readonly idOf: ClientId | undefined;
  /** The request as it came, if a provider of the model speaks its wire; else null. */
  readonly native: NativeRequestFacts | null;
}

const KEEP_ALIVE_MS = 15_000;
const EMPTY = Buffer.alloc(0);
/** One event of a stream. Its other members depend on its type. */
export const EVENT_SCHEMA = {
  title: 'StreamEvent',
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string', description: 'The same as the name of the event.' } },
  additionalProperties: true,
};

/**
 * Adds a route to `app` that answers requests of another wire with chat calls. They are routed, billed and repeated
 * like all chat calls.
 */
export function addTranslatedRoute<B extends RoutedBody>(
  app: FastifyInstance,
  deps: WireDeps,
  admissionOf: (request: FastifyRequest) => Admission,
  wire: ChatWire<B>,
): void {
  const read = createRead(deps, wire);
  const keepAlive = createKeepAlive(deps.keepAliveMs ?? KEEP_ALIVE_MS);
  const chooseChat = createOpenChat(deps);
  const largeAnswers = createLargeAnswers(deps);
  const headersOf = createTranslatedHeaders(wire.nameOf);
  const streamType = `${wire.streamType}; charset=utf-8`;

  const route: PaidRoute<TranslatedRequest, StartedChat> = {
    path: wire.path,
    options: {
      schema: {
        ...wire.described,
        ...wire.address?.schema,
        tags: ['Chat'],
        consumes: ['application/json'],
        body: wire.schema,
        response: {
          200: {
            description: 'The answer, or the events of a stream.',
            content: {
              'application/json': { schema: wire.answerSchema },
              [wire.streamType]: { schema: wire.eventSchema ?? EVENT_SCHEMA },
            },
          },
          ...errorsOf(wire),
        },
      },
      errorHandler: answerError(deps, wire),
      config: { ...refusesAs(wire), clientsAppend: true, ...wire.address?.config },
    },
    headers: ({ id }) => ({ 'request-id': id }),
    async decode(request, admitted) {
      const memory = app.requestBodies.beside(request);
      try {
        return { ...(await read(request, admitted, memory)), release: () => memory.release() };
      } catch (error) {
        memory.release();
        throw error;
      }
    },
    answer({ translation, modelOf, idOf, native, caller, payment }, { request, client, onError }) {
      const { body, dropped, encoder: wireEncoder, reframed, keeps, background } = translation;
      const headers = (chat: ReplyHeaders, isNative: boolean) => headersOf(chat, dropped, isNative);
      const encoderOf = ({ id, about }: StartedChat) => wireEncoder(id, modelOf(about.sent.service ?? null));
      const translated = createTranslatedEncoder({ streamType, encoder: encoderOf, idOf, headers });
      const encoder = reframed ? (startedCall: StartedChat) => reframed(translated(startedCall)) : translated;
      const options = { encoder, keepAlive, onError };
      const toHttp = (error: GatewayError) => wire.toError(error, request);
      const context = {
        ...contextOf(deps, request, { caller, payment }),
        output: () => new ChunkEvents(createToolCallIds(idOf)),
        native,
        lost: dropped,
        ...(background ? { onLocked: background.onLocked } : {}),
      };
      const open = chooseChat(body, context, onError);
      return {
        noun: wire.noun,
        model: body.model,
        open: background ? (callId) => background.admit().then(() => open(callId, background.gone)) : open,
        async write(startedCall, sink) {
          if (background) {
            const quiet = { ...options, onError: untilGone(background.gone, onError) };
            await background.answer(startedCall, sink, (replySink) => writeChatReply(startedCall, replySink, quiet));
            // It is charged at its end, so a repeat must not begin it again.
            return true;
          }
          const keeping = await keeps?.(startedCall, sink, onError);
          try {
            return await writeChatReply(startedCall, keeping?.sink ?? sink, { ...options, toHttp });
          } finally {
            await keeping?.finish();
          }
        },
        ...largeAnswers(client, { caller, model: body.model, onError }),
      };
    },
  };
  addPaidRoute(app, paidRouteDeps(deps, admissionOf), route);
}

/** Whether a name means a service: it is its own, has a suffix such as `:floor`, or pins a provider before it. */
const isNameOf = (service: string, name: string): boolean =>
  name === service || name.startsWith(`${service}:`) || name.endsWith(`:${service}`);

function idsFor({ seals }: WireRequest, { idsCarry }: Translation): ClientId | undefined {
  if (idsCarry === undefined) return undefined;
  return (id, call, message) => seals.sealCall(id, call, idsCarry === 'message' ? message : NOTHING);
}

/** Leaves out the errors of a call after it was cancelled, because it may fail because of that. */
const untilGone = (gone: CancelSignal, onError: (error: unknown) => void) => (error: unknown) => {
  if (!gone.aborted) onError(error);
};

/** The config of a wire's routes. An unknown path or method below them is refused with an error of the wire. */
export const refusesAs = ({ toError }: Pick<ChatWire<never>, 'toError'>) =>
  ({
    refusal: (error: GatewayError, request: Pick<FastifyRequest, 'id' | 'headers' | 'originalUrl'>) => {
      const { body, ...errorHead } = toError(error, request);
      return { ...errorHead, text: JSON.stringify(body) };
    },
    refusesBelow: true,
  }) as const;

export const errorsOf = ({ errorSchema }: Pick<ChatWire<never>, 'errorSchema'>) =>
  errorSchema === undefined ? {} : { default: errorSchema };

export const answerError =
  ({ onError }: Pick<ChatDeps, 'onError'>, { toError }: Pick<ChatWire<never>, 'toError'>) =>
  (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const known = toGatewayError(error);
    const { status, headers, body } = toError(known, request);
    if (status >= 500 && !isOfProvider(known.code))
      onError(known.code === 'internal' ? error : (known.cause ?? known), request);
    void reply.code(status).headers(headers).send(body);
  };

/**
 * Reads a body and checks it. A large body is read in several turns of the event loop. `place`: completes the parsed
 * body before the check. Throws or rejects with GatewayError.
 */
export function createReadBody<B>(
  limits: ChatDeps['config']['limits'],
  schema: ChatWire<B>['schema'],
): (bytes: Buffer | undefined, headers: IncomingHttpHeaders, place?: (parsed: unknown) => unknown) => B | Promise<B> {
  const check = createCheck<B>(schema);
  const names: InterpretedFieldsAt = [[[], interpretedFields(Object.keys(schema.properties))]];
  const checked = (read: unknown): B => {
    const parsed = withModel(read);
    const fault = typeof parsed === 'object' && parsed !== null ? ambiguousKeyAt(parsed, names) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    return check(parsed);
  };
  return (bytes = EMPTY, headers, place) => {
    return after(readJson(bytes, limits), place === undefined ? checked : (read) => checked(place(read)));
  };
}

function createRead<B extends RoutedBody>(deps: WireDeps, wire: ChatWire<B>) {
  const { payments = NO_PAYMENTS, config } = deps;
  const requestDeps = requestDepsOf(deps);
  const readBody = createReadBody<B>(config.limits, wire.schema);
  const isNative = wire.native === null ? () => false : createSpeaks(deps.catalog ?? null, wire.native.name);
  return async (
    request: FastifyRequest<{ Body: Buffer | undefined }>,
    admitted: Caller,
    memory: MoreMemory,
  ): Promise<TranslatedRequest> => {
    const { headers } = request;
    const bytes = bodyFrom(request);
    const { address } = wire;
    const parsedBody = await readBody(bytes, headers, address && ((parsed) => address.place(parsed, request)));
    // The address is part of the hash, because the same body has another answer at another address.
    const at = address === undefined ? wire.path : `${wire.path} ${address.text(request)}`;
    const bodyHash = () => hash('sha256', `${at} ${hash('sha256', bytes)}`);
    const payer = await payerOf(payments, headers, admitted, bodyHash);
    const resolved = (await wire.resolve?.(parsedBody, bytes, payer.caller, memory)) ?? {
      wire,
      requestBody: parsedBody,
      bytes,
    };
    const { requestBody } = resolved;
    const wireRequest = new WireRequest(request, payer.caller, requestBody.model, requestDeps);
    const publicOnly = config.webhooks?.allowPrivate === false;
    const { translation, native } = isNative([wireRequest.model, ...(requestBody.models ?? [])])
      ? asNative(resolved.wire, requestBody, resolved.bytes, wireRequest)
      : { translation: resolved.wire.translate(requestBody, wireRequest), native: null };
    const body = withMaxCost(translation.body, headers['x-max-cost']);
    if (publicOnly) refusePrivateMedia(body);
    if (native !== null) {
      refuseKeptAtProvider(native.requestBody, native.wire);
      if (publicOnly) refusePrivateUrls(requestBody);
    }
    const capped = body === translation.body ? translation : { ...translation, body };
    const modelOf = (service: string | null) =>
      service === null || isNameOf(service, wireRequest.model) ? requestBody.model : service;
    return { translation: capped, modelOf, idOf: idsFor(wireRequest, capped), native, ...payer };
  };
}
