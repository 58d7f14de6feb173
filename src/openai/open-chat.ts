import type { Config } from '#config';
import { openCall, type StartedProviderCall, targetOf, type Pipeline, type TargetAdapters } from '#gateway';
import { openBridged } from './bridge/open-bridged.ts';
import type { OpenChat, StartedChat } from './chat-reply.ts';
import type { ChatBody } from './request/chat-schema.ts';
import { toCall, type ChatContext } from './chat-to-call.ts';
import { openToolLoop, type ToolLoopDeps } from './tool-loop/open-tool-loop.ts';

interface OpenChatDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly config: Pick<Config, 'limits' | 'upstream'>;
  /** Agents and tools, by the prefix of their names. */
  readonly targets: () => Partial<TargetAdapters>;
  /** Needed for tools that the gateway calls for a model; null if it calls none. */
  readonly toolLoop: ToolLoopDeps | null;
}

/** Opens the answer to a checked request. `onError` gets unexpected errors that happen while it is answered. */
type ChooseChat = (body: ChatBody, context: ChatContext, onError: (error: unknown) => void) => OpenChat;

/**
 * Chooses what answers a request: a model, a model whose tools the gateway calls, or a tool or an agent that is
 * asked as if it were a model. Throws GatewayError for errors that show without a look-up.
 */
export function createOpenChat({ pipeline, config, targets, toolLoop }: OpenChatDeps): ChooseChat {
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
      return openToolLoop({ pipeline, config, deps: toolLoop, mcp: known.mcp ?? null, onError }, body, asChat);
    }
    return openModel(pipeline, body, context);
  };
}

function openModel(pipeline: OpenChatDeps['pipeline'], body: ChatBody, context: ChatContext): OpenChat {
  const { request, exchange } = toCall(body, context);
  const toChat = ({ id, call, frames }: StartedProviderCall): StartedChat => {
    exchange.callId = id;
    const { service: model, stream, startedAt } = call;
    return { id, call, frames, about: { id, model, stream, startedAt, sent: exchange } };
  };
  return (callId, gone) => {
    const opened = openCall(pipeline, request, callId, gone);
    return opened instanceof Promise ? opened.then(toChat) : toChat(opened);
  };
}
