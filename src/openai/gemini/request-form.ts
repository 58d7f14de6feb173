import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import { invalid } from '../translated/chat-turns.ts';
import type { GeminiBody } from './schema.ts';

/*
 * Brings a request of the Gemini API into one form. Its readers accept each name in camel case and in snake case, as
 * all readers of ProtoJSON do, and its address names the model and the kind of answer.
 */

/** The request was written anew, so that its text is not that of the client. */
const REWRITTEN = Symbol('rewritten');
/** The stream is a JSON array. */
const IN_ARRAY = Symbol('in an array');

/** The gateway's own fields, which are written in snake case. */
const OWN: ReadonlySet<string> = new Set([
  'models',
  'provider',
  'continue',
  'session_id',
  'max_cost',
  'max_price',
  'max_tool_rounds',
  'tollgate',
]);
/** Members that are data, such as the arguments of a call. The names in them are the client's. */
const DATA: ReadonlySet<string> = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
  'headers',
  'labels',
]);
const SNAKE = /_([a-z0-9])/g;

/** How the events of a stream are written: as server-sent events, or as the elements of a JSON array. */
type StreamForm = 'sse' | 'array';

interface Addressed {
  readonly Params: { readonly model: string };
  readonly Querystring: { readonly alt?: string };
}

/** The name of the model in the address. A client may write the collection before it. */
export const modelInAddress = (request: FastifyRequest): string => {
  const { model } = request.params as Addressed['Params'];
  return model.startsWith(COLLECTION) ? model.slice(COLLECTION.length) : model;
};

const COLLECTION = 'models/';

/** The form of a stream that the address asks for. Google's API makes an array unless `alt=sse` is set. */
export const streamFormOf = (request: FastifyRequest): StreamForm =>
  (request.query as Addressed['Querystring']).alt === 'sse' ? 'sse' : 'array';

/**
 * The parsed body with its names in camel case, and with the model of the address. Any value may come; the schema
 * refuses what is no object. `stream`: null for a whole answer. Throws GatewayError `invalid_request`.
 */
export function placedBody(parsed: unknown, model: string, stream: StreamForm | null): unknown {
  if (!isObject(parsed)) return parsed;
  const body = withoutSnake(parsed, '');
  if (body['stream'] !== undefined)
    throw invalid('stream', 'absent. A stream has its own address: :streamGenerateContent?alt=sse');
  const modelName = body['model'];
  if (modelName !== undefined && modelName !== null && modelName !== model && modelName !== COLLECTION + model)
    throw invalid('model', 'absent, or the model that the address names');
  return {
    ...body,
    model,
    stream: stream !== null,
    ...(body === parsed ? {} : { [REWRITTEN]: true }),
    ...(stream === 'array' ? { [IN_ARRAY]: true } : {}),
  };
}

export const isInArray = (requestBody: GeminiBody): boolean => IN_ARRAY in requestBody;

/** The JSON text of a placed body as a provider of this API gets it. `bytes`: the text that the client wrote. */
export function textOfPlaced(requestBody: GeminiBody, bytes: Buffer): Buffer {
  if (!(REWRITTEN in requestBody)) return bytes;
  const { model: _model, stream: _stream, ...body } = requestBody;
  return Buffer.from(JSON.stringify(body));
}

/** Returns the same object if nothing in it changes. */
function withoutSnake(value: JsonObject, at: string): JsonObject {
  let changed: Record<string, unknown> | null = null;
  for (const [name, member] of Object.entries(value)) {
    if (at === '' && OWN.has(name)) continue;
    const camel = name.includes('_') ? name.replaceAll(SNAKE, (_, letter: string) => letter.toUpperCase()) : name;
    const path = at === '' ? camel : `${at}.${camel}`;
    if (camel !== name && Object.hasOwn(value, camel))
      throw new GatewayError('invalid_request', `${path} is given twice, also as ${name}: send it once`, {
        param: path,
      });
    const inside = DATA.has(camel) ? member : insideOf(member, path);
    if (camel === name && inside === member) continue;
    changed ??= { ...value };
    if (camel !== name) delete changed[name];
    changed[camel] = inside;
  }
  return changed ?? value;
}

function insideOf(value: unknown, at: string): unknown {
  if (Array.isArray(value)) {
    const inside = (value as unknown[]).map((element, index) => insideOf(element, `${at}[${index}]`));
    return inside.some((element, index) => element !== value[index]) ? inside : value;
  }
  return isObject(value) ? withoutSnake(value, at) : value;
}
