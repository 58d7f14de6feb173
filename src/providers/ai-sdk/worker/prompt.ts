import type { JsonObject } from '#wire';
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, stringOf } from './json.ts';
import { echoedOptions } from './provider-options.ts';

/* The messages of a chat request as a prompt of the AI SDK. */

type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;
type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];

/** Throws RequestFault for a message that a prompt has no place for. */
export function toPrompt(messages: unknown): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Message[] = [];
  /** Names of the called tools, by the ids of their calls: the AI SDK wants them with the results. */
  const called = new Map<string, string>();
  for (const [index, message] of listOf(messages).entries()) {
    const at = `messages[${index}]`;
    if (!isRecord(message)) throw new RequestFault(`${at} must be an object`, { param: at });
    const { role, content } = message;
    if (role === 'system' || role === 'developer') prompt.push({ role: 'system', content: textsOf(content, at) });
    else if (role === 'user') prompt.push({ role, content: userParts(content, at) });
    else if (role === 'assistant') prompt.push({ role, content: assistantParts(message, at, called) });
    else if (role === 'tool') {
      const part = toolResult(message, at, called);
      const last = prompt.at(-1);
      // Results of calls that were made together stay together, as some vendors require.
      if (last?.role === 'tool') last.content.push(part);
      else prompt.push({ role, content: [part] });
    } else
      throw new RequestFault(`${at}.role is ${JSON.stringify(role)}, which the AI SDK does not have`, {
        param: `${at}.role`,
      });
  }
  return prompt;
}

function textsOf(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part, index) => {
      const text = isRecord(part) ? part['text'] : undefined;
      if (typeof text === 'string') return text;
      throw new RequestFault(`${at}.content[${index}] must be text`, { param: `${at}.content[${index}]` });
    })
    .join('\n');
}

function userParts(content: unknown, at: string): UserPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return listOf(content).map((part, index) => userPart(part, `${at}.content[${index}]`));
}

function userPart(part: unknown, at: string): UserPart {
  const { type, ...more } = isRecord(part) ? part : ({} as JsonObject);
  switch (type) {
    case 'text':
      return { type, text: stringOf(more['text']) ?? '' };
    case 'image_url':
      return fileAt(urlOf(more['image_url']), 'image', at);
    case 'audio_url':
      return fileAt(urlOf(more['audio_url']), 'audio', at);
    case 'video_url':
      return fileAt(urlOf(more['video_url']), 'video', at);
    case 'input_audio': {
      const { data, format } = isRecord(more['input_audio']) ? more['input_audio'] : ({} as JsonObject);
      const mediaType = format === 'mp3' ? 'audio/mpeg' : `audio/${stringOf(format) ?? 'wav'}`;
      return { type: 'file', mediaType, data: { type: 'data', data: stringOf(data) ?? '' } };
    }
    case 'file':
      return namedFile(more['file'], at);
    default:
      throw new RequestFault(`${at}.type is ${JSON.stringify(type)}, which the AI SDK does not have`, {
        param: `${at}.type`,
      });
  }
}

const urlOf = (value: unknown): unknown => (isRecord(value) ? value['url'] : value);

function namedFile(file: unknown, at: string): LanguageModelV4FilePart {
  const { filename, file_data: data, file_url: url } = isRecord(file) ? file : ({} as JsonObject);
  const part = fileAt(data ?? url, 'application/pdf', at);
  return typeof filename === 'string' ? { ...part, filename } : part;
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,/i;

/** A file of a data URL, of another URL, or of base64. `kind`: its media type, if the address does not say it. */
export function fileAt(address: unknown, kind: string, at: string): LanguageModelV4FilePart {
  if (typeof address !== 'string' || address === '')
    throw new RequestFault(`${at} has no data and no address`, { param: at });
  // Only the beginning is searched, because the rest may have many megabytes.
  const data = DATA_URL.exec(address.slice(0, 256));
  if (data)
    return {
      type: 'file',
      mediaType: data[1] ?? kind,
      data: { type: 'data', data: address.slice(data[0].length) },
    };
  if (!/^https?:/i.test(address.slice(0, 8)))
    return { type: 'file', mediaType: kind, data: { type: 'data', data: address } };
  const url = URL.parse(address);
  if (url === null) throw new RequestFault(`${at} has an address that is no URL`, { param: at });
  return { type: 'file', mediaType: kind, data: { type: 'url', url } };
}

/** Thinking comes first, as the model wrote it, then text, then the calls. */
function assistantParts(message: JsonObject, at: string, called: Map<string, string>): Assistant {
  return [...reasoningParts(message), ...saidParts(message, at), ...callParts(message, at, called)];
}

/** The name of the member in which details of this program have the metadata of the AI SDK. */
export const METADATA = 'provider_metadata';

/** Thinking with its signatures, if the consumer sends back the details that it got; else its text. */
function reasoningParts(message: JsonObject): LanguageModelV4ReasoningPart[] {
  const signed = listOf(message['reasoning_details']).flatMap((detail): LanguageModelV4ReasoningPart[] => {
    if (!isRecord(detail) || !isRecord(detail[METADATA])) return [];
    return [{ type: 'reasoning', text: stringOf(detail['text']) ?? '', ...echoedOptions(detail[METADATA]) }];
  });
  if (signed.length > 0) return signed;
  const text = stringOf(message['reasoning_content']) ?? stringOf(message['reasoning']) ?? '';
  return text === '' ? [] : [{ type: 'reasoning', text }];
}

function saidParts({ content, refusal }: JsonObject, at: string): UserPart[] {
  const texts = typeof refusal === 'string' && refusal !== '' ? [refusal] : [];
  if (typeof content === 'string' && content !== '') texts.unshift(content);
  const textParts: UserPart[] = texts.map((text) => ({ type: 'text', text }));
  if (!Array.isArray(content)) return textParts;
  const parts = listOf(content).flatMap((part, index): UserPart[] => {
    const { type, refusal: refused } = isRecord(part) ? part : ({} as JsonObject);
    // Thinking of another wire is in `reasoning_details` where it can be read again.
    if (type === 'thinking' || type === 'redacted_thinking') return [];
    if (type === 'refusal') return [{ type: 'text', text: stringOf(refused) ?? '' }];
    return [userPart(part, `${at}.content[${index}]`)];
  });
  return [...parts, ...textParts];
}

function callParts(
  { tool_calls: calls }: JsonObject,
  at: string,
  called: Map<string, string>,
): LanguageModelV4ToolCallPart[] {
  return listOf(calls).map((call, index) => {
    const { id, function: fn, extra_content: extra } = isRecord(call) ? call : ({} as JsonObject);
    const { name, arguments: args } = isRecord(fn) ? fn : ({} as JsonObject);
    if (typeof id !== 'string' || typeof name !== 'string')
      throw new RequestFault(`${at}.tool_calls[${index}] must have an id and function.name`, {
        param: `${at}.tool_calls[${index}]`,
      });
    called.set(id, name);
    const metadata = isRecord(extra) ? extra[METADATA] : undefined;
    return { type: 'tool-call', toolCallId: id, toolName: name, input: inputOf(args), ...echoedOptions(metadata) };
  });
}

/** The arguments of a call. A model may have written what is no JSON, and wrote it then as text. */
function inputOf(value: unknown): unknown {
  if (typeof value !== 'string') return value ?? {};
  if (value.trim() === '') return {};
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function toolResult(
  message: JsonObject,
  at: string,
  called: ReadonlyMap<string, string>,
): LanguageModelV4ToolResultPart {
  const { tool_call_id: id, content, name } = message;
  if (typeof id !== 'string') throw new RequestFault(`${at}.tool_call_id is missing`, { param: `${at}.tool_call_id` });
  const toolName = called.get(id) ?? stringOf(name);
  if (toolName === undefined)
    throw new RequestFault(`${at}.tool_call_id is of no call of an assistant message before it`, {
      param: `${at}.tool_call_id`,
    });
  return { type: 'tool-result', toolCallId: id, toolName, output: outputOf(content, at) };
}

function outputOf(content: unknown, at: string): LanguageModelV4ToolResultOutput {
  if (typeof content === 'string') return { type: 'text', value: content };
  const parts = userParts(content, at);
  if (parts.every((part) => part.type === 'text'))
    return { type: 'text', value: parts.map(({ text }) => text).join('\n') };
  return { type: 'content', value: parts };
}
