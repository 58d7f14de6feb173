import { GatewayError } from '#errors';
import { nameSchema } from '#http';
import { isObject } from '#wire';
import type { WireAddress } from '../translated/chat-wire.ts';
import { modelInAddress, placedBody, streamFormOf } from './request-form.ts';

/* The addresses of the Gemini API: a model, a colon and a method. */

const METHODS = [
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
] as const;
type GeminiMethod = (typeof METHODS)[number];

/** The prefix of the API's routes below `/api`. */
export const GEMINI_PREFIX = '/v1beta';

/** The route of a method. A name may have colons of its own, so the last one ends it. */
export const pathOf = (method: GeminiMethod): string => `${GEMINI_PREFIX}/models/:model(^.+)::${method}`;

export const modelParams = {
  type: 'object',
  properties: {
    model: {
      ...nameSchema,
      description: 'The name of the model, with its slashes as they are or encoded. `models/` before it is accepted.',
    },
  },
} as const;

/** The config of the route of a model's entry. A path with a colon means a method, which only POST can have. */
export const ENTRY_CONFIG = {
  methodsAt: (path: string): readonly string[] => (path.includes(':') ? [] : ['GET', 'HEAD']),
  missingAt(path: string) {
    const name = path.slice(path.indexOf(MODELS) + MODELS.length);
    const colon = name.lastIndexOf(':');
    const [model, method] = [name.slice(0, colon), name.slice(colon + 1)];
    return `${shownPart(model)} has no method ${shownPart(method)}. Its methods are ${METHODS.join(', ')}`;
  },
} as const;

const MODELS = '/models/';

const shownPart = (part: string): string => JSON.stringify(part.replaceAll(/%2F/gi, '/').slice(0, 128));

/** Throws GatewayError `method_not_allowed` for the entry of a model with the name of a method behind it. */
export function refuseMethod(model: string, httpMethod: string): void {
  if (METHODS.some((method) => model.endsWith(`:${method}`)))
    throw new GatewayError('method_not_allowed', `${model.slice(0, 200)} does not take ${httpMethod}. It takes POST`, {
      headers: { allow: 'POST' },
    });
}

/** The config of a method's route. A client with another base URL or version is told the right one. */
export const configOf = (method: GeminiMethod) =>
  ({
    clientsAppend: (path: string) =>
      !path.startsWith(`/api${GEMINI_PREFIX}${MODELS}`) &&
      path.endsWith(`:${method}`) &&
      // A name of at least one character is between them.
      path.slice(0, -method.length - 2).includes(MODELS),
    refusesBelow: GEMINI_PREFIX,
  }) as const;

export function addressOf(method: 'generateContent' | 'streamGenerateContent' | 'countTokens'): WireAddress {
  const stream = method === 'streamGenerateContent';
  return {
    schema: {
      params: modelParams,
      ...(stream ? { querystring: STREAM_QUERY } : {}),
    },
    config: configOf(method),
    place: (parsed, request) =>
      placedBody(
        method === 'countTokens' ? counted(parsed) : parsed,
        modelInAddress(request),
        stream ? streamFormOf(request) : null,
      ),
    text: (request) => (stream ? `${modelInAddress(request)} ${streamFormOf(request)}` : modelInAddress(request)),
  };
}

const STREAM_QUERY = {
  type: 'object',
  additionalProperties: true,
  properties: {
    alt: {
      type: 'string',
      description:
        '`sse`: the answer is a stream of server-sent events. Otherwise it is a JSON array, element by element.',
    },
  },
} as const;

function counted(parsed: unknown): unknown {
  if (!isObject(parsed)) return parsed;
  const wrapped = parsed['generateContentRequest'] ?? parsed['generate_content_request'];
  return wrapped ?? parsed;
}
