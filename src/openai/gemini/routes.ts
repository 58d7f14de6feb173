import type { FastifyPluginAsync } from 'fastify';
import { isObject } from '#wire';
import type { ChatWire } from '../translated/chat-wire.ts';
import type { WireDeps } from '../translated/wire-request.ts';
import { wireRoutes } from '../translated/wire-routes.ts';
import { addressOf, pathOf } from './address.ts';
import { inArray } from './array-stream.ts';
import { decodeRequest, nameOfField } from './decode-request.ts';
import { embedRoutes } from './embeddings.ts';
import { createGeminiEncoder } from './encode-reply.ts';
import { GEMINI_ERROR, toGeminiError } from './errors.ts';
import { type GeminiModelsDeps, modelRoutes } from './models.ts';
import { GEMINI_PASSTHROUGH } from './passthrough.ts';
import { isInArray, textOfPlaced } from './request-form.ts';
import { geminiAnswerSchema, type GeminiBody, geminiSchema } from './schema.ts';
import { runsHere } from './tools.ts';

export interface GeminiDeps extends Omit<WireDeps, 'catalog'>, GeminiModelsDeps {}

export function geminiRoutes(deps: GeminiDeps): FastifyPluginAsync {
  const schema = geminiSchema(deps.config.limits.messagesMax);
  const [whole, stream] = [geminiWire(schema, 'generateContent'), geminiWire(schema, 'streamGenerateContent')];
  const answers = wireRoutes(deps, [whole, stream], {
    wire: geminiWire(schema, 'countTokens'),
    path: pathOf('countTokens'),
    schema,
    schemaName: 'totalTokens',
    more: {},
    described: {
      summary: 'Count the tokens of a prompt in the Gemini API',
      operationId: 'countGeminiTokens',
      description: 'Approximate number of tokens in the prompt; `generateContentRequest` may hold the request',
    },
  });
  return async (app) => {
    await app.register(answers);
    await app.register(embedRoutes(deps));
    await app.register(modelRoutes(deps));
  };
}

type Answering = 'generateContent' | 'streamGenerateContent' | 'countTokens';

function geminiWire(schema: ReturnType<typeof geminiSchema>, method: Answering): ChatWire<GeminiBody> {
  const wire: ChatWire<GeminiBody> = {
    path: pathOf(method),
    schema,
    noun: 'An answer',
    answerSchema: method === 'streamGenerateContent' ? ANSWERS : geminiAnswerSchema,
    eventSchema: geminiAnswerSchema,
    streamType: 'text/event-stream',
    described: DESCRIBED[method],
    address: addressOf(method),
    nameOf: nameOfField,
    errorSchema: GEMINI_ERROR,
    toError: toGeminiError,
    native: GEMINI_PASSTHROUGH,
    async resolve(requestBody, bytes, _caller, memory) {
      const text = textOfPlaced(requestBody, bytes);
      if (text !== bytes) memory.grow(text.byteLength);
      return { wire, requestBody, bytes: text };
    },
    runsHere,
    translate(requestBody, request) {
      const { body, dropped } = decodeRequest(requestBody, request);
      return {
        body,
        dropped,
        // Clients such as gemini-cli do not send thoughts back, but the signatures of calls.
        idsCarry: 'message',
        encoder: (callId, model) =>
          createGeminiEncoder({
            responseId: callId.replace(/^gen-/, ''),
            model,
            showsThoughts: showsThoughts(requestBody),
            request,
          }),
        ...(isInArray(requestBody) ? { reframed: inArray } : {}),
      };
    },
  };
  return wire;
}

function showsThoughts({ generationConfig: config }: GeminiBody): boolean {
  const thinking = config?.['thinkingConfig'];
  return isObject(thinking) && thinking['includeThoughts'] === true;
}

/** A stream in one piece. */
const ANSWERS = { title: 'GeminiAnswers', type: 'array', items: geminiAnswerSchema };

const OF_EVERY_MODEL =
  "Google's Gemini API for every model, agent and tool of the gateway. A provider that supports this API gets the request unchanged. For other providers the gateway translates the request to a chat completion, and translates the reply back. Routing and billing are always those of a chat completion. " +
  '`x-tollgate-dropped` names the fields that the provider did not get. ' +
  'The key may be in `x-goog-api-key`. Errors have the shape `{"error": {"code", "message", "status", "details"}}`.';

const DESCRIBED = {
  generateContent: {
    summary: 'Create an answer in the Gemini API',
    operationId: 'generateContent',
    description: OF_EVERY_MODEL,
  },
  streamGenerateContent: {
    summary: 'Stream an answer in the Gemini API',
    operationId: 'streamGenerateContent',
    description: `${OF_EVERY_MODEL} With \`alt=sse\` the answer is \`text/event-stream\`, otherwise a JSON array. The last event has \`finishReason\` and the final \`usageMetadata\`.`,
  },
  countTokens: { summary: '', operationId: '', description: '' },
} as const;
