import type { FastifyPluginAsync } from 'fastify';
import { PARSED_JSON } from '#http';
import { takeBytes } from '#call';
import { requireAdmission } from '#auth';
import { measurePrompt, tokensOf } from '../chat/request/prompt-size.ts';
import { isBridged, withoutAlias, hostOfUrl, serviceAtAddress } from '../translated/service-names.ts';
import { NOTHING, type SealedCalls } from '../chat/reply/echo-fields.ts';
import type { SealedThinking } from '../chat/reply/sealed-thinking.ts';
import { createToolNames, runsHere } from './tools.ts';
import { addTranslatedRoute } from '../translated/translated-route.ts';
import type { ChatWire } from '../translated/chat-wire.ts';
import { ANTHROPIC_ERROR, toAnthropicError } from './errors.ts';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { addCountRoute } from '../translated/count-route.ts';
import { messageAnswerSchema, type MessagesBody, messagesSchema } from './schema.ts';
import { createMessageEncoder } from './encode-reply.ts';
import { MESSAGES_PASSTHROUGH } from './passthrough.ts';
import { decodeRequest } from './decode-request.ts';

export interface MessagesDeps extends ChatDeps {
  readonly thinking: SealedThinking;
  readonly calls: SealedCalls;
}

/**
 * `POST /messages` and `POST /messages/count_tokens`, as clients of Anthropic's API send them. Register it under
 * `/api/v1`.
 */
export function messagesRoutes(deps: MessagesDeps): FastifyPluginAsync {
  const wire = messagesWire(deps);
  return async (app) => {
    takeBytes(app, deps.config.limits.chatBodyBytesMax, PARSED_JSON);
    await app.register(async (paid) => {
      const admissionOf = requireAdmission(paid, deps.pipeline.admit, true);
      addTranslatedRoute(paid, deps, admissionOf, wire);
    });
    await app.register(async (free) =>
      addCountRoute(free, deps, {
        wire,
        path: '/messages/count_tokens',
        schema: messagesSchema(deps.config.limits.messagesMax, true),
        named: 'input_tokens',
        more: {},
        described: {
          summary: 'Count the tokens of a message',
          operationId: 'countMessageTokens',
          description: 'Approximate number of tokens in the prompt of a message',
        },
      }),
    );
  };
}

function messagesWire({ config, thinking, calls }: MessagesDeps): ChatWire<MessagesBody> {
  const serviceAtHost = (host: string) => (url: string) => serviceAtAddress(url, [host, hostOfUrl(config.publicUrl)]);
  return {
    path: '/messages',
    schema: messagesSchema(config.limits.messagesMax),
    noun: 'A message',
    answerSchema: messageAnswerSchema,
    streamType: 'text/event-stream',
    described: {
      summary: 'Create a message',
      operationId: 'createMessage',
      description:
        "Anthropic's Messages API for every model, agent and tool of the gateway. A provider that supports this API gets the request unchanged. For other providers the gateway translates the request to a chat completion, and translates the reply back. Routing and billing are always those of a chat completion. " +
        'With `stream` the answer is `text/event-stream` with the events of that API. `x-tollgate-dropped` names the fields that the provider did not get. ' +
        'Errors have the shape `{"type": "error", "error": {"type", "message"}, "request_id"}`.',
    },
    nameOf: (field) => (field.startsWith('reasoning') ? 'thinking' : field === 'stop' ? 'stop_sequences' : field),
    errorSchema: ANTHROPIC_ERROR,
    toError: toAnthropicError,
    native: MESSAGES_PASSTHROUGH,
    runsHere: (asked, { host }) => runsHere(asked, { serviceAt: serviceAtHost(host) }),
    translate(asked, { caller, requestId, headers, host, targets }) {
      const model = withoutAlias(asked.model, targets);
      const thinkingOf = { account: caller.account, model };
      const names = createToolNames();
      const ids = calls(thinkingOf);
      const shown = shownAs(asked.thinking);
      const { body, dropped } = decodeRequest(model === asked.model ? asked : { ...asked, model }, {
        names,
        thought: (text, signature) => thinking.open(thinkingOf, text, signature),
        opened: ids.open,
        serviceAt: serviceAtHost(host),
        session: sessionIn(headers['x-claude-code-session-id']),
        bridged: isBridged(model) && !targets.model?.has(model),
      });
      return {
        body,
        dropped,
        // Thinking that the client does not see comes back with the calls.
        idOf: (id, call, message) => ids.seal(id, call, shown === 'off' ? message : NOTHING),
        encoder: (callId) =>
          createMessageEncoder({
            id: `msg_${callId.replace(/^gen-/, '')}`,
            model: asked.model,
            promptTokens: () => tokensOf(measurePrompt(body).bytes),
            names,
            stopSequences: asked.stop_sequences ?? [],
            thinking: shown,
            seals: thinking,
            thinkingOf,
            isIn: ids.holds,
            requestId,
            managesContext: asked['context_management'] !== undefined && asked['context_management'] !== null,
          }),
      };
    },
  };
}

const SESSION_MAX = 256;
const sessionIn = (header: string | string[] | undefined): string | null =>
  typeof header === 'string' && header !== '' && header.length <= SESSION_MAX ? header : null;

/**
 * How thinking is shown. Clients that ask for no thinking take the first block as the answer, so they get no
 * thinking.
 */
function shownAs(thinking: MessagesBody['thinking']): 'shown' | 'sealed' | 'off' {
  if (!thinking || thinking.type === 'disabled') return 'off';
  return thinking['display'] === 'omitted' ? 'sealed' : 'shown';
}
