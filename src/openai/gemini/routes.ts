import type { FastifyPluginAsync } from 'fastify';
import { PARSED_JSON } from '#http';
import { takeBytes } from '#call';
import { requireAdmission } from '#auth';
import { isObject } from '#wire';
import { hostOfUrl, isBridged, serviceAtAddress, withoutAlias } from '../translated/service-names.ts';
import { isSealedCall, type SealedCalls } from '../chat/reply/echo-fields.ts';
import type { SealedThinking } from '../chat/reply/sealed-thinking.ts';
import { createToolNames } from '../messages/tools.ts';
import { addTranslatedRoute } from '../translated/translated-route.ts';
import { addCountRoute } from '../translated/count-route.ts';
import type { ChatWire } from '../translated/chat-wire.ts';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { inArray } from './array-stream.ts';
import { createGeminiEncoder } from './encode-reply.ts';
import { addressOf, pathOf } from './address.ts';
import { embedRoutes } from './embeddings.ts';
import { GEMINI_ERROR, toGeminiError } from './errors.ts';
import { type GeminiModelsDeps, modelRoutes } from './models.ts';
import { geminiAnswerSchema, type GeminiBody, geminiSchema } from './schema.ts';
import { GEMINI_PASSTHROUGH } from './passthrough.ts';
import { isInArray, textOfPlaced } from './request-form.ts';
import { signedThought, textInSignature } from './signatures.ts';
import { nameOfField, decodeRequest } from './decode-request.ts';
import { runsHere } from './tools.ts';

export interface GeminiDeps extends Omit<ChatDeps, 'catalog'>, GeminiModelsDeps {
  readonly thinking: SealedThinking;
  readonly calls: SealedCalls;
}

/** The routes of Google's Gemini API. Register them under `/api`. */
export function geminiRoutes(deps: GeminiDeps): FastifyPluginAsync {
  return async (app) => {
    takeBytes(app, deps.config.limits.chatBodyBytesMax, PARSED_JSON);
    await app.register(async (paid) => {
      const admissionOf = requireAdmission(paid, deps.pipeline.admit, true);
      addTranslatedRoute(paid, deps, admissionOf, geminiWire(deps, 'generateContent'));
      addTranslatedRoute(paid, deps, admissionOf, geminiWire(deps, 'streamGenerateContent'));
    });
    await app.register(async (free) =>
      addCountRoute(free, deps, {
        wire: geminiWire(deps, 'countTokens'),
        path: pathOf('countTokens'),
        schema: geminiSchema(deps.config.limits.messagesMax),
        named: 'totalTokens',
        more: {},
        described: {
          summary: 'Count the tokens of a prompt in the Gemini API',
          operationId: 'countGeminiTokens',
          description: 'Approximate number of tokens in the prompt; `generateContentRequest` may hold the request',
        },
      }),
    );
    await app.register(embedRoutes(deps));
    await app.register(modelRoutes(deps));
  };
}

type Answering = 'generateContent' | 'streamGenerateContent' | 'countTokens';

function geminiWire({ config, thinking, calls }: GeminiDeps, method: Answering): ChatWire<GeminiBody> {
  const serviceAtHost = (host: string) => (url: string) => serviceAtAddress(url, [host, hostOfUrl(config.publicUrl)]);
  const wire: ChatWire<GeminiBody> = {
    path: pathOf(method),
    schema: geminiSchema(config.limits.messagesMax),
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
    async resolve(asked, bytes, _caller, memory) {
      const text = textOfPlaced(asked, bytes);
      if (text !== bytes) memory.grow(text.byteLength);
      return { wire, asked, bytes: text };
    },
    runsHere: (asked, { host }) => runsHere(asked, serviceAtHost(host)),
    translate(asked, { caller, host, targets }) {
      const model = withoutAlias(asked.model, targets);
      const thinkingOf = { account: caller.account, model };
      const names = createToolNames();
      const ids = calls(thinkingOf);
      const { body, dropped } = decodeRequest(model === asked.model ? asked : { ...asked, model }, {
        names,
        thought: (shown, signature) => signedThought(thinking, thinkingOf, shown, signature),
        opened(signature) {
          const id = textInSignature(signature);
          return isSealedCall(id) ? ids.open(id) : null;
        },
        serviceAt: serviceAtHost(host),
        bridged: isBridged(model) && !targets.model?.has(model),
      });
      return {
        body,
        dropped,
        // Clients such as gemini-cli do not send thoughts back, but the signatures of calls.
        idOf: (id, call, message) => ids.seal(id, call, message),
        encoder: (callId) =>
          createGeminiEncoder({
            responseId: callId.replace(/^gen-/, ''),
            model: asked.model,
            names,
            showsThoughts: showsThoughts(asked),
            seals: thinking,
            thinkingOf,
            isIn: ids.holds,
          }),
        ...(isInArray(asked) ? { reframed: inArray } : {}),
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
