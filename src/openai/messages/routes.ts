import type { FastifyPluginAsync } from 'fastify';
import type { ChatWire } from '../translated/chat-wire.ts';
import { promptTokensOf, type WireDeps } from '../translated/wire-request.ts';
import { wireRoutes } from '../translated/wire-routes.ts';
import { decodeRequest } from './decode-request.ts';
import { createMessageEncoder } from './encode-reply.ts';
import { ANTHROPIC_ERROR, toAnthropicError } from './errors.ts';
import { MESSAGES_PASSTHROUGH } from './passthrough.ts';
import { messageAnswerSchema, type MessagesBody, messagesSchema } from './schema.ts';
import { runsHere } from './tools.ts';

export function messagesRoutes(deps: WireDeps): FastifyPluginAsync {
  const { messagesMax } = deps.config.limits;
  const wire = messagesWire(messagesMax);
  return wireRoutes(deps, [wire], {
    wire,
    path: '/messages/count_tokens',
    schema: messagesSchema(messagesMax, true),
    schemaName: 'input_tokens',
    more: {},
    described: {
      summary: 'Count the tokens of a message',
      operationId: 'countMessageTokens',
      description: 'Approximate number of tokens in the prompt of a message',
    },
  });
}

const messagesWire = (messagesMax: number): ChatWire<MessagesBody> => ({
  path: '/messages',
  schema: messagesSchema(messagesMax),
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
  nameOf: (field) => (field === 'stop' ? 'stop_sequences' : field),
  errorSchema: ANTHROPIC_ERROR,
  toError: toAnthropicError,
  native: MESSAGES_PASSTHROUGH,
  runsHere,
  translate(requestBody, request) {
    const { body, dropped } = decodeRequest(requestBody, request);
    const thinkingForm = shownAs(requestBody.thinking);
    return {
      body,
      dropped,
      // Thinking that the client does not see comes back with the calls.
      idsCarry: thinkingForm === 'off' ? 'message' : 'call',
      encoder: (callId, model) =>
        createMessageEncoder({
          id: `msg_${callId.replace(/^gen-/, '')}`,
          model,
          promptTokens: () => promptTokensOf(body),
          stopSequences: requestBody.stop_sequences ?? [],
          thinking: thinkingForm,
          request,
          managesContext: requestBody['context_management'] !== undefined && requestBody['context_management'] !== null,
        }),
    };
  },
});

/**
 * How thinking is shown. Clients that ask for no thinking take the first block as the answer, so they get no
 * thinking.
 */
function shownAs(thinking: MessagesBody['thinking']): 'shown' | 'sealed' | 'off' {
  if (!thinking || thinking.type === 'disabled') return 'off';
  return thinking['display'] === 'omitted' ? 'sealed' : 'shown';
}
