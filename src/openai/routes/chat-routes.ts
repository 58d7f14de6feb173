import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { after, readJson, isObject } from '#wire';
import { createKeepAlive, type Dialect, dialectOf, createCheck, PARSED_JSON, toHttpError } from '#http';
import { GatewayError } from '#errors';
import type { Config } from '#config';
import type { Admission } from '#limits';
import {
  addPaidRoute,
  bodyFrom,
  type Idempotency,
  openCall,
  type PaidRoute,
  type PaidRouteDeps,
  type Payer,
  payerOf,
  type Pipeline,
  type StartedProviderCall,
  takeBytes,
  withModel,
} from '#call';
import type { Caller } from '#accounts';
import type { Catalog } from '#catalog';
import { NO_PAYMENTS, type Payments } from '#payments';
import { type TargetAdapters, targetOf } from '#bridge';
import { requireAdmission } from '#auth';
import { refuseAmbiguousKeys, refusePlugins, refusePrivateMedia, refuseStoredFiles } from '../chat/request/refusals.ts';
import { chatAnswerSchema } from '../chat/chat-answer-schema.ts';
import { createChatEncoder } from '../chat/reply/chat-encoder.ts';
import type { ChatPiece, ChatResult } from '../chat/reply/chat-end.ts';
import {
  type ChatAnswersDeps,
  type StartedChat,
  writeChatReply,
  createLargeAnswers,
  type OpenChat,
} from '../chat/reply/chat-reply.ts';
import { asksUsage, chatSchema, type ChatBody } from '../chat/chat-schema.ts';
import { withMaxCost, toCall, type ChatContext } from '../call/chat-to-call.ts';
import { type ToolLoopDeps, openToolLoop } from '../tool-loop/open-tool-loop.ts';
import { openBridged } from '../bridge/open-bridged.ts';

export interface ChatDeps extends ChatAnswersDeps {
  readonly pipeline: Pipeline;
  readonly idempotency: Idempotency;
  /** Default: nothing can be paid in place. */
  readonly payments?: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'> & Partial<Pick<Config, 'publicUrl' | 'webhooks'>>;
  /** Needed for tools that the gateway calls for a model. Default: it calls none. */
  readonly toolLoop?: ToolLoopDeps;
  /** Tells which models speak another wire than chat. Default: no model does. */
  readonly catalog?: Pick<Catalog, 'resolve' | 'knows'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly onError: PaidRouteDeps['onError'];
  /** A stream without data for this long gets a comment. */
  readonly keepAliveMs?: number;
}

/** Path of the chat wire below `/api/v1`. */
export const CHAT_PATH = '/chat/completions';

const KEEP_ALIVE_MS = 15_000;

/** A request that is read and checked. Nothing has been looked up for it yet. */
interface ChatRequest extends Payer {
  readonly body: ChatBody;
}

/**
 * `POST /chat/completions`, streaming or not. Register it under `/api/v1`. Errors before the first byte go to the
 * server's error handler.
 */
export function chatRoutes(deps: ChatDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits } = config;
  const schema = chatSchema(limits.messagesMax);
  const readChat = createReadChat(payments, config, createCheck<ChatBody>(schema));
  const keepAlive = createKeepAlive(deps.keepAliveMs ?? KEEP_ALIVE_MS);
  const chooseChat = createOpenChat(deps);
  const largeAnswers = createLargeAnswers(deps);

  const route: PaidRoute<ChatRequest, StartedChat> = {
    path: CHAT_PATH,
    options: {
      schema: { ...DESCRIBED, body: schema, response: { 200: chatAnswerSchema } },
      config: { clientsAppend: true },
    },
    decode: (request, admitted) => readChat(bodyFrom(request), request.headers, admitted),
    answer(chatRequest, { request, client, onError }) {
      const { body, caller } = chatRequest;
      const dialect = dialectOf(request);
      const context = contextOf(deps, request, chatRequest, dialect);
      const encoder = createChatEncoder({ dialect, asksUsage: asksUsage(body) });
      const options = { encoder, keepAlive, toHttp: (error: GatewayError) => toHttpError(error, dialect), onError };
      return {
        noun: 'A chat completion',
        model: body.model,
        open: chooseChat(body, context, onError),
        write: (startedCall, sink) => writeChatReply(startedCall, sink, options),
        ...largeAnswers(client, { caller, model: body.model, onError }),
      };
    },
  };
  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.chatBodyBytesMax, PARSED_JSON);
    addPaidRoute(app, paidRouteDeps(deps, admissionOf), route);
  };
}

/** The context of a chat call that answers a request of any wire. `dialect`: see ChatContext. */
export const contextOf = (
  { config, now }: ChatDeps,
  request: FastifyRequest,
  { caller, payment }: Pick<Payer, 'caller' | 'payment'>,
  dialect: Dialect = 'own',
): ChatContext => ({
  caller,
  payment,
  requestId: request.id,
  headers: request.headers,
  now: now(),
  replyBytesMax: config.upstream.replyBytesMax,
  receipts: config.billing.receipts,
  dialect,
});

export const paidRouteDeps = (
  { idempotency, payments = NO_PAYMENTS, config, onError }: ChatDeps,
  admissionOf: (request: FastifyRequest) => Admission,
): PaidRouteDeps => ({ idempotency, payments, limits: config.limits, onError, admissionOf });

type ReadChat = (bytes: Buffer, headers: IncomingHttpHeaders, admitted: Caller) => ChatRequest | Promise<ChatRequest>;

/** Reads and checks a request. Throws, or rejects with, GatewayError if the request is invalid. */
function createReadChat(
  payments: Payments,
  { limits, webhooks }: ChatDeps['config'],
  check: (value: unknown) => ChatBody,
): ReadChat {
  return (bytes, headers, admitted) => {
    const understood = (parsed: unknown): ChatRequest | Promise<ChatRequest> => {
      refuseAmbiguousKeys(parsed);
      refuseResponses(parsed);
      const body = withMaxCost(check(withModel(parsed)), headers['x-max-cost']);
      refusePlugins(body);
      refuseStoredFiles(body);
      if (webhooks?.allowPrivate === false) refusePrivateMedia(body);
      const payer = payerOf(payments, headers, admitted, () => hash('sha256', bytes));
      return after(payer, ({ caller, payment, repeats }) => ({ body, caller, payment, repeats }));
    };
    return after(readJson(bytes, limits), understood);
  };
}

/**
 * Some clients send Responses API requests to this address, for model names that OpenAI serves only through the
 * Responses API.
 */
function refuseResponses(body: unknown): void {
  if (!isObject(body) || body['messages'] !== undefined || body['input'] === undefined) return;
  throw new GatewayError(
    'invalid_request',
    'messages is missing. A body with input is a request of the Responses API: send it to POST /api/v1/responses',
    { param: 'messages' },
  );
}

const DESCRIBED = {
  summary: 'Create a chat completion',
  operationId: 'createChatCompletion',
  description:
    'Routes the conversation to a provider of the model, locks the estimated cost, and settles by actual use. ' +
    'With `stream` the answer is `text/event-stream`: `data:` frames with `choices[].delta`, the last of which carries `finish_reason` and `usage`, then `data: [DONE]`. ' +
    'Fields of the published chat API and the usual sampling extensions that are not listed here are passed to the provider untouched, others to providers ' +
    'that list them; the header `x-tollgate-dropped` names those that were not passed on. ' +
    '`a2a/<agent>` and `mcp/<service>/<tool>` instead of a model call an agent or a tool, at its own price. ' +
    'Tools of type `mcp` are called by the gateway itself: `usage.cost` is then the sum of all calls, which `usage.cost_details.children` lists.',
  tags: ['Chat'],
  consumes: ['application/json'],
};
const NO_TARGETS: Partial<TargetAdapters> = {};

/** Opens the answer to a checked request. `onError` gets unexpected errors that happen while it is answered. */
type ChooseChat = (body: ChatBody, context: ChatContext, onError: (error: unknown) => void) => OpenChat;

/**
 * Chooses what answers a request: a model, a model whose tools the gateway calls, or a tool or an agent that is
 * asked as if it were a model. Throws GatewayError for errors that show without a look-up.
 */
export function createOpenChat({
  pipeline,
  config,
  targets = () => NO_TARGETS,
  toolLoop,
}: Pick<ChatDeps, 'pipeline' | 'config' | 'targets' | 'toolLoop'>): ChooseChat {
  return (body, context, onError) => {
    const known = targets();
    const spoken = targetOf(known, body.model);
    // A model with exactly this name has priority, so that its existing callers still reach it.
    if (spoken !== null && spoken.target.primitive !== 'model' && !known.model?.has(body.model))
      return openBridged({ pipeline, limits: config.limits }, spoken, body, context);
    if (body.tools?.some(({ type }) => type === 'mcp')) {
      // Each turn is a separate chat request. The client's native body is not sent on, because it contains the
      // credentials of its tools.
      const asChat = { ...context, native: null };
      return openToolLoop({ pipeline, config, deps: toolLoop ?? null, mcp: known.mcp ?? null, onError }, body, asChat);
    }
    return openModel(pipeline, body, context);
  };
}

function openModel(pipeline: ChatDeps['pipeline'], body: ChatBody, context: ChatContext): OpenChat {
  const { request, adapter } = toCall(body, context);
  const toChat = ({ id, call, frames }: StartedProviderCall<ChatResult, ChatPiece>): StartedChat => {
    adapter.callId = id;
    const { service: model, stream, startedAt } = call;
    return { id, call, frames, about: { id, model, stream, startedAt, sent: adapter } };
  };
  return (callId, gone) => after(openCall(pipeline, request, callId, gone), toChat);
}
