import type { FastifyPluginAsync } from 'fastify';
import type { StreamShares } from '#limits';
import type { KeptResponses } from '#kept-responses';
import type { WireDeps } from '../translated/wire-request.ts';
import { wireRoutes } from '../translated/wire-routes.ts';
import type { ChatWire, Resolved } from '../translated/chat-wire.ts';
import type { Background } from './background/background.ts';
import { changedBody, type Conversations, createConversations } from './kept/conversations.ts';
import { refuseNeverKept, refuseUnkept } from './kept/errors.ts';
import { responseIdOf } from './kept/kept-ids.ts';
import { keepsResponse } from './kept/keep-responses.ts';
import { keptRoutes } from './kept-routes.ts';
import { responseBase } from './response-object.ts';
import { compactWire } from './compact.ts';
import { toResponseError } from './errors.ts';
import { createResponseEncoder } from './encode-reply.ts';
import { responseAnswerSchema, type ResponsesBody, responsesSchema } from './schema.ts';
import { ownPassthrough } from './passthrough.ts';
import { decodeRequest } from './decode-request.ts';
import { runsHere } from './tools.ts';

export interface ResponsesDeps extends WireDeps {
  readonly keptResponses: KeptResponses | null;
  readonly background: Background | null;
  readonly listeners: StreamShares;
}

export function responsesRoutes(deps: ResponsesDeps): FastifyPluginAsync {
  const { keptResponses, config } = deps;
  const { messagesMax: itemsMax, chatBodyBytesMax: bytesMax } = config.limits;
  const conversations = createConversations({ keptResponses, itemsMax, bytesMax });
  const wire = responsesWire(deps, conversations);
  const answers = wireRoutes(deps, [wire, compactWire(wire, conversations, itemsMax)], {
    wire,
    path: '/responses/input_tokens',
    schema: wire.schema,
    schemaName: 'input_tokens',
    more: { object: 'response.input_tokens' },
    described: {
      summary: 'Count the input tokens of a response',
      operationId: 'countResponseTokens',
      description: 'Approximate number of tokens in the input of a response',
    },
  });
  return async (app) => {
    await app.register(keptRoutes({ ...deps, conversations }));
    await app.register(answers);
  };
}

const NAMES: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text',
  verbosity: 'text',
};

interface ResponseMembers {
  readonly isKept: boolean;
  readonly previous: string | null;
  /** The client's own; providers do not get it. */
  readonly metadata?: ResponsesBody['metadata'];
  readonly isInBackground: boolean;
}

function responsesWire(deps: ResponsesDeps, conversations: Conversations): ChatWire<ResponsesBody> {
  const { keptResponses, background, now, config } = deps;
  const route = {
    path: '/responses',
    schema: responsesSchema(config.limits.messagesMax),
    noun: 'A response',
    answerSchema: responseAnswerSchema,
    streamType: 'text/event-stream',
    described: {
      summary: 'Create a response',
      operationId: 'createResponse',
      description:
        "OpenAI's Responses API for every model, agent and tool of the gateway. A provider that supports this API gets the request unchanged. For other providers the gateway translates the request to a chat completion, and translates the reply back. Routing and billing are always those of a chat completion. " +
        'With `stream` the answer is `text/event-stream` with the events of that API. A response is kept for later requests, unless the request says `store: false`. `x-tollgate-dropped` names the fields that the provider did not get.',
    },
    nameOf: (field: string) => NAMES[field] ?? field,
    toError: toResponseError,
  };
  return {
    ...route,
    ...wireFor(deps, { isKept: false, previous: null, isInBackground: false }),
    async resolve(requestBody, bytes, caller, memory) {
      refuseNeverKept(requestBody);
      const isInBackground = requestBody.background === true;
      if (isInBackground) refuseUnkept(requestBody, background !== null);
      const isKept = keptResponses !== null && requestBody.store !== false && !caller.anonymous;
      const { previous_response_id: previousId, metadata } = requestBody;
      const previous = previousId ?? null;
      const wire = { ...route, ...wireFor(deps, { isKept, previous, metadata, isInBackground }) };
      const resolved = await conversations.resolve(requestBody, bytes, caller, memory);
      if (!isInBackground) {
        if (!isKept) return { ...resolved, wire };
        const keeps = keepsResponse(keptResponses, { caller, requestBody });
        return {
          ...resolved,
          wire: { ...wire, translate: (...request) => ({ ...wire.translate(...request), keeps }) },
        };
      }
      const first = (callId: string) =>
        responseBase({
          id: responseIdOf(callId),
          createdAt: Math.floor(now() / 1000),
          requestBody,
          stored: true,
          previous,
          background: true,
        });
      const inBackground = background!.answers({ caller, requestBody, first });
      return {
        ...streamed(resolved),
        wire: { ...wire, translate: (...request) => ({ ...wire.translate(...request), background: inBackground }) },
      };
    },
  };
}

/** The provider of a response in the background streams it, so that what came until it is cancelled is known. */
function streamed({ requestBody, bytes }: Pick<Resolved<ResponsesBody>, 'requestBody' | 'bytes'>) {
  const { background: _background, ...rest } = requestBody;
  const text = changedBody(bytes.toString('utf8'), { stream: 'true', background: null });
  return { requestBody: { ...rest, stream: true }, bytes: Buffer.from(text) };
}

function wireFor(
  { now: clock }: ResponsesDeps,
  { isKept, previous, metadata, isInBackground }: ResponseMembers,
): Pick<ChatWire<ResponsesBody>, 'native' | 'runsHere' | 'translate'> {
  return {
    native: ownPassthrough(
      (callId) => ({
        ...(isKept ? { id: responseIdOf(callId), store: true } : {}),
        ...(previous === null ? {} : { previous_response_id: previous }),
        ...(isInBackground ? { background: true } : {}),
        ...(metadata === undefined || metadata === null ? {} : { metadata }),
      }),
      isKept,
    ),
    runsHere,
    translate(requestBody, request) {
      const { summary, isReturned } = asksThinking(requestBody);
      const { body, dropped, untranslatable } = decodeRequest(requestBody, request);
      return {
        body,
        dropped,
        untranslatable,
        // Thinking that the client does not return comes back with the calls.
        idsCarry: isReturned ? 'call' : 'message',
        encoder: (callId, model) =>
          createResponseEncoder({
            id: responseIdOf(callId),
            createdAt: Math.floor(request.now / 1000),
            now: () => Math.floor(clock() / 1000),
            requestBody: model === requestBody.model ? requestBody : { ...requestBody, model },
            stored: isKept,
            previous,
            background: isInBackground,
            registry: request.toolNames,
            thinking: {
              isAsked: summary || isReturned,
              summary,
              seals: request.seals,
            },
          }),
      };
    },
  };
}

/** `isReturned`: the client sends the encrypted thinking back. */
const asksThinking = ({ reasoning, include }: ResponsesBody) => ({
  summary: (reasoning?.['summary'] ?? null) !== null,
  isReturned: include?.includes('reasoning.encrypted_content') === true,
});
