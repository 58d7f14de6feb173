import { nameSchema } from '#http';
import { isObject } from '#wire';
import type { WireAddress } from '../translated/chat-wire.ts';
import { modelInAddress, placedBody, streamFormOf } from './request-form.ts';

/* The addresses of the Gemini API: a model, a colon and a method. */

/** The methods of a model that have an address here. */
export type Method =
  | 'generateContent'
  | 'streamGenerateContent'
  | 'countTokens'
  | 'embedContent'
  | 'batchEmbedContents';

/** The prefix of the API's routes below `/api`. */
export const GEMINI_PREFIX = '/v1beta';

/** The route of a method. A name may have colons of its own, so the last one ends it. */
export const pathOf = (method: Method): string => `${GEMINI_PREFIX}/models/:model(^.+)::${method}`;

export const modelParams = {
  type: 'object',
  properties: {
    model: {
      ...nameSchema,
      description: 'The name of the model, with its slashes as they are or encoded. `models/` before it is accepted.',
    },
  },
} as const;

/** The config of a method's route. A client with another base URL or version is told the right one. */
export const configOf = (method: Method) =>
  ({
    clientsAppend: new RegExp(`^(?!/api/v1beta/models/).*/models/.+:${method}$`),
    refusesBelow: GEMINI_PREFIX,
  }) as const;

/** `stream`: the method makes a stream. */
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
  properties: {
    alt: {
      type: 'string',
      description:
        '`sse`: the answer is a stream of server-sent events. Otherwise it is a JSON array, element by element.',
    },
  },
} as const;

/** A request to count may be wrapped, so that it can have more than contents. */
function counted(parsed: unknown): unknown {
  if (!isObject(parsed)) return parsed;
  const wrapped = parsed['generateContentRequest'] ?? parsed['generate_content_request'];
  return wrapped ?? parsed;
}
