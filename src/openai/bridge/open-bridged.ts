import { hash } from 'node:crypto';
import { GatewayError } from '#errors';
import type { JsonLimits } from '#wire';
import {
  type Call,
  capCost,
  type CallRequest,
  type ProviderAdapter,
  openCall,
  type Pipeline,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#call';
import type { Caller } from '#accounts';
import type { Offer, Provider } from '#catalog';
import type { ContentResult, EventBatch, TargetAdapter } from '#bridge';
import { maxCostOf, type ChatContext } from '../call/chat-to-call.ts';
import type { OpenChat, ReplyAbout } from '../chat/reply/chat-reply.ts';
import type { ChatBody } from '../chat/chat-schema.ts';
import { chatFrames } from './chat-frames.ts';
import { refuseUnsupported, toAsk } from './to-ask.ts';

export interface BridgeOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly limits: JsonLimits;
}

/**
 * Opens a chat request to a tool or an agent. The request becomes parts. It runs and is billed as a call of the tool
 * or agent, and its reply is chat. Throws GatewayError `invalid_request` for a request that only a model can serve.
 */
export function openBridged(
  { pipeline, limits }: BridgeOptions,
  { target, name }: { readonly target: TargetAdapter; readonly name: string },
  body: ChatBody,
  context: ChatContext,
): OpenChat {
  refuseUnsupported(body);
  const ask = toAsk(body, {
    primitive: target.primitive,
    session: ownSession(context.caller, requestedSession(body, context.headers)),
    limits,
  });
  const maxCost = maxCostOf(body);
  const { caller, payment, requestId } = context;
  const traceparent = context.headers['traceparent'];

  return async (callId, gone) => {
    // Everything that may fail comes before: the request may hold memory that only its call gives back.
    const quote = requestedQuote(null, context.headers, null);
    const preferences = body.provider ? { preferences: toPreferences(body.provider) } : {};
    const targetRequest = await target
      .toCall(name, ask, {
        caller,
        requestId,
        traceparent: typeof traceparent === 'string' ? traceparent : null,
        wantsReceipt: wantsReceipt(ask.stream, context),
      })
      .catch((error: unknown) => {
        throw inTheBody(error);
      });
    let serving: Offer | null = null;
    const sent = { isRequested: false, dropped: [], maxTokens: null };
    const request: CallRequest<ContentResult, EventBatch> = {
      ...targetRequest,
      adapter: watched(targetRequest.adapter, (offer) => {
        serving = offer;
        sent.isRequested = true;
      }),
      quote,
      ...(payment ? { payment } : {}),
      onLocked: context.onLocked,
      ...(body.metadata ? { metadata: body.metadata } : {}),
      ...preferences,
    };
    const startedCall = await openCall(pipeline, capCost(request, maxCost), callId, gone);
    const { call } = startedCall;
    const about: ReplyAbout = {
      id: call.id,
      model: body.model,
      stream: ask.stream,
      startedAt: call.startedAt,
      sent,
    };
    const provider = (): Provider => (serving ?? firstOf(call)).provider;
    return {
      ...startedCall,
      about,
      frames: chatFrames(startedCall.frames, { call, about, replyBytesMax: context.replyBytesMax, provider }),
    };
  };
}

/** Corrects the `param` of an error: in a chat request, tasks and contexts are named in the member `tollgate`. */
function inTheBody(error: unknown): unknown {
  if (!(error instanceof GatewayError) || (error.param !== 'task_id' && error.param !== 'context_id')) return error;
  return new GatewayError(error.code, error.message, { param: `tollgate.${error.param}`, cause: error });
}

/**
 * The id of an agent's context. Session names are chosen by clients and often short, so the id is a digest of
 * account and session. Otherwise two accounts could share a context.
 */
function ownSession({ account, run }: Caller, session: string | null): string | null {
  return session === null
    ? null
    : `session-${hash('sha256', JSON.stringify([account, run?.parent ?? null, session])).slice(0, 40)}`;
}

const firstOf = (call: Call): Offer => call.candidates[0]!.offer;

/** Reports which offer is asked, because a provider adapter may have no head that names it. */
const watched = (
  native: ProviderAdapter<ContentResult, EventBatch>,
  served: (offer: Offer) => void,
): ProviderAdapter<ContentResult, EventBatch> => ({
  begin: (call) => native.begin?.(call),
  resolved: (state) => native.resolved?.(state),
  startAttempt(offer, ...rest) {
    served(offer);
    return native.startAttempt(offer, ...rest);
  },
});
