import { GatewayError } from '#errors';
import { isObject, type JsonLimits, type JsonObject, parseJson } from '#wire';
import type { Primitive } from '#config';
import type { FilePart, Part, TargetRequest, ContentTurn } from '#bridge';
import { requestedCap } from '../chat/request/chat-budget.ts';
import type { ChatBody, ChatMessage, ContentPart } from '../chat/chat-schema.ts';
import { partsOfDataUrl } from '../chat/request/picture-url.ts';

const ROLES: Readonly<Record<string, ContentTurn['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
};

interface AskOptions {
  readonly primitive: Primitive;
  /** The session that the client names, in the body or in a header; null for none. */
  readonly session: string | null;
  readonly limits: JsonLimits;
}

/**
 * Turns a chat request into a request in parts for a tool or an agent. Throws GatewayError `invalid_request` that
 * names the message or the part.
 */
export function toAsk(body: ChatBody, { primitive, session, limits }: AskOptions): TargetRequest {
  const last = body.messages.length - 1;
  const turns = body.messages.map((message, index) => toTurn(message, `messages[${index}]`));
  if (turns[last]!.role !== 'user')
    throw new GatewayError(
      'invalid_request',
      `messages[${last}].role must be user, because the last message is the request`,
      {
        param: `messages[${last}].role`,
      },
    );
  if (turns[last]!.parts.length === 0)
    throw new GatewayError(
      'invalid_request',
      `messages[${last}].content is empty, but the last message is the request`,
      {
        param: `messages[${last}].content`,
      },
    );
  const task = taskOf(body);
  return {
    turns,
    arguments: primitive === 'tool' ? argumentsOf(turns[last]!.parts, limits) : null,
    contextId: task.contextId ?? (primitive === 'agent' ? session : null),
    taskId: task.taskId,
    maxTokens: requestedCap(body),
    stream: body.stream === true,
  };
}

function toTurn({ role: givenRole, content, tool_calls: calls }: ChatMessage, at: string): ContentTurn {
  const role = ROLES[givenRole];
  if (role === undefined)
    throw invalid(`${at}.role is ${givenRole}, which only chat models support. Remove the message`, `${at}.role`);
  if (Array.isArray(calls) && calls.length > 0)
    throw invalid(`${at}.tool_calls works only with chat models. Remove the message`, `${at}.tool_calls`);
  if (typeof content === 'string') return { role, parts: content === '' ? [] : [{ kind: 'text', text: content }] };
  return { role, parts: (content ?? []).map((part, index) => toPart(part, `${at}.content[${index}]`)) };
}

function toPart(part: ContentPart, at: string): Part {
  switch (part.type) {
    case 'text':
      return { kind: 'text', text: part.text! };
    case 'image_url':
      return fileOf(part.image_url!.url, null);
    case 'input_audio': {
      const audio = part['input_audio'];
      if (!isObject(audio) || typeof audio['data'] !== 'string' || typeof audio['format'] !== 'string')
        throw invalid(
          `${at}.input_audio must be an object such as {"data": "<base64>", "format": "wav"}`,
          `${at}.input_audio`,
        );
      return {
        kind: 'file',
        mediaType: `audio/${audio['format'].slice(0, 64)}`,
        name: null,
        url: null,
        bytes: audio['data'],
      };
    }
    case 'file': {
      const file = part['file'];
      if (!isObject(file) || typeof file['file_data'] !== 'string')
        throw invalid(
          `${at}.file must be an object such as {"filename": "a.pdf", "file_data": "data:application/pdf;base64,…"}. This gateway stores no files`,
          `${at}.file`,
        );
      return fileOf(file['file_data'], typeof file['filename'] === 'string' ? file['filename'] : null);
    }
    default:
      throw invalid(
        `${at}.type is ${JSON.stringify(part.type.slice(0, 40))}; a tool or an agent takes text, image_url, input_audio and file`,
        `${at}.type`,
      );
  }
}

/** A file from a data URL, from a web address, or from bare base64. */
function fileOf(source: string, name: string | null): FilePart {
  const parts = partsOfDataUrl(source);
  if (parts) return { kind: 'file', mediaType: parts.mediaType, name, url: null, bytes: parts.data };
  if (/^https?:\/\//i.test(source)) return { kind: 'file', mediaType: null, name, url: source, bytes: null };
  return { kind: 'file', mediaType: null, name, url: null, bytes: source };
}

/**
 * The arguments for a tool: the last text in the last message that is a JSON object. Earlier messages are not
 * searched, because their calls were made before.
 */
function argumentsOf(parts: readonly Part[], limits: JsonLimits): TargetRequest['arguments'] {
  for (const part of parts.toReversed()) {
    const value = part.kind === 'text' && /^\s*\{/.test(part.text) ? objectIn(part.text, limits) : null;
    if (value !== null) return value;
  }
  return null;
}

/** Whether a model wrote no arguments: nothing, `null`, or an empty text. */
export function isNoArguments(text: string): boolean {
  const written = text.trim();
  return written === '' || written === 'null' || (/^".*"$/s.test(written) && written.slice(1, -1).trim() === '');
}

/**
 * Parses the arguments of a call, which are a JSON object. Returns null for any other text, and for an object that
 * exceeds the limits of a request.
 */
export function objectIn(text: string, limits: JsonLimits): JsonObject | null {
  if (isNoArguments(text)) return {};
  const value = jsonIn(text, limits);
  return isObject(value) ? value : null;
}

/**
 * The text that a model wrote for a tool of one text, as JSON: the member that it was asked for, the only text among
 * other members, or the text itself. null for anything else.
 */
export function textIn(text: string, limits: JsonLimits, member: string | null = null): string | null {
  const value = jsonIn(text, limits);
  if (typeof value === 'string') return value;
  if (!isObject(value)) return null;
  if (member !== null && typeof value[member] === 'string') return value[member];
  const texts = Object.values(value).filter((one) => typeof one === 'string');
  return texts.length === 1 ? texts[0]! : null;
}

/** undefined for a text that is not JSON, or that exceeds the limits. */
function jsonIn(text: string, limits: JsonLimits): unknown {
  try {
    return parseJson(Buffer.from(text), limits);
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

function taskOf({ tollgate }: ChatBody): { readonly taskId: string | null; readonly contextId: string | null } {
  return { taskId: tollgate?.task_id ?? null, contextId: tollgate?.context_id ?? null };
}

const invalid = (message: string, param: string) => new GatewayError('invalid_request', message, { param });

/**
 * Fields that only a chat model can obey, each with a test for the values that ask for nothing special. Fields that
 * only influence the style of an answer (temperature, seed) are allowed.
 */
const UNSUPPORTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  tools: (value) => Array.isArray(value) && value.length === 0,
  functions: (value) => Array.isArray(value) && value.length === 0,
  tool_choice: (value) => value === 'none' || value === 'auto',
  function_call: (value) => value === 'none' || value === 'auto',
  response_format: (value) => (value as { readonly type?: unknown } | null)?.type === 'text',
  stop: (value) => Array.isArray(value) && value.length === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => typeof value === 'object' && Object.keys(value!).length === 0,
  modalities: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
  audio: () => false,
  prediction: () => false,
  models: (value) => Array.isArray(value) && value.length === 0,
  max_tool_rounds: () => false,
};

/** Throws GatewayError `invalid_request` if a body asks for something that a tool or an agent cannot do. */
export function refuseUnsupported(body: ChatBody): void {
  for (const field of Object.keys(UNSUPPORTED)) {
    const value = body[field];
    if (value === undefined || value === null || UNSUPPORTED[field]!(value)) continue;
    const message = `${field} works only with chat models. Remove it from requests to ${body.model.slice(0, 128)}`;
    throw new GatewayError('invalid_request', message, { param: field });
  }
}
