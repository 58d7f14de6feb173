import type { Config } from '#config';
import { openCall, type OpenedCall, speakerOf, type Pipeline, type Speakers } from '#gateway';
import { openBridged } from './bridge/open-bridged.ts';
import type { OpenChat, OpenedChat } from './chat-reply.ts';
import type { ChatBody } from './request/chat-schema.ts';
import { toCall, type ChatContext } from './chat-to-call.ts';
import { openToolLoop, type ToolLoopDeps } from './tool-loop/open-tool-loop.ts';

interface OpenChatDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly config: Pick<Config, 'limits' | 'upstream'>;
  /** Agents and tools, by the prefix of their names. */
  readonly speakers: () => Partial<Speakers>;
  /** For tools that the gateway calls for a model; null where it calls none. */
  readonly toolLoop: ToolLoopDeps | null;
}

/** A request as it was checked, and whom to tell of what should not happen while it is answered. */
type ChooseChat = (body: ChatBody, context: ChatContext, onError: (error: unknown) => void) => OpenChat;

/**
 * Chooses what answers a request: a model, a model whose tools the gateway calls, or a tool or an agent that is
 * asked as if it were a model. Throws GatewayError for what can be seen to be wrong before anything is looked up.
 */
export function createOpenChat({ pipeline, config, speakers, toolLoop }: OpenChatDeps): ChooseChat {
  return (body, context, onError) => {
    const known = speakers();
    const spoken = speakerOf(known, body.model);
    // A model of exactly that name goes first: whoever called it so before goes on getting it.
    if (spoken !== null && spoken.speaker.primitive !== 'model' && !known.model?.has(body.model))
      return openBridged({ pipeline, limits: config.limits }, spoken, body, context);
    if (body.tools?.some(({ type }) => type === 'mcp')) {
      // Each turn is a chat request of its own. The client's body has the credentials of its tools.
      const asChat = { ...context, native: null };
      return openToolLoop({ pipeline, config, deps: toolLoop, mcp: known.mcp ?? null, onError }, body, asChat);
    }
    return openModel(pipeline, body, context);
  };
}

function openModel(pipeline: OpenChatDeps['pipeline'], body: ChatBody, context: ChatContext): OpenChat {
  const { request, exchange } = toCall(body, context);
  const toChat = ({ id, call, frames }: OpenedCall): OpenedChat => {
    exchange.callId = id;
    const { service: model, stream, startedAt } = call;
    return { id, call, frames, about: { id, model, stream, startedAt, sent: exchange } };
  };
  return (callId, gone) => {
    const opened = openCall(pipeline, request, callId, gone);
    return opened instanceof Promise ? opened.then(toChat) : toChat(opened);
  };
}
