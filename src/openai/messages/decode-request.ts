import type { JsonObject } from '#wire';
import { hash } from 'node:crypto';
import type { GatewayError } from '#errors';
import type { ChatMessage, ContentPart } from '../chat/chat-schema.ts';
import { invalid, addMissing, addResult, joinThinking, addUser, GAP, reminderOf } from '../translated/chat-turns.ts';
import { ChatDraft, readFields } from '../translated/chat-draft.ts';
import type { MessagesBody, Block } from './schema.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import { toChatTools } from './tools.ts';
import { EchoFields, echoMembersOf } from '../chat/reply/echo-fields.ts';
import { partsOfDataUrl, pictureOf, plainBase64 } from '../chat/request/picture-url.ts';

const FIELDS = readFields(
  [
    ['max_tokens', 'max_tokens'],
    ['temperature', 'temperature'],
    ['top_p', 'top_p'],
    ['top_k', 'top_k'],
    ['stop_sequences', 'stop'],
  ],
  [
    'messages',
    'system',
    'tools',
    'tool_choice',
    'mcp_servers',
    'thinking',
    'output_config',
    'output_format',
    'metadata',
  ],
);

/**
 * Claude Code begins its prompt with a line about itself. The line changes with each version, so it would spoil
 * caches.
 */
const BILLING_LINE = 'x-anthropic-billing-header:';

/**
 * Turns a request of the Messages API into a chat request. Throws GatewayError `invalid_request` for malformed
 * content, and `unprocessable` for something that only Anthropic can do.
 */
export function decodeRequest(requestBody: MessagesBody, request: WireRequest): ChatDraft {
  const draft = new ChatDraft(requestBody, request, FIELDS);
  const { body } = draft;
  const messages = toChatMessages(requestBody, request);
  draft.say(systemOf(requestBody.system), messages);
  if (messages.length === 0) throw invalid('messages', 'at least one message with content');
  addTools(draft, requestBody, request);
  addThinking(draft, requestBody);
  addFormat(draft, requestBody);
  const user = requestBody.metadata?.['user_id'];
  if (typeof user === 'string') body['user'] = userDigest(user);
  // For the gateway: no provider gets it.
  if (requestBody.metadata) body.metadata = requestBody.metadata;
  const session = requestBody.session_id ?? request.sessionIn('x-claude-code-session-id');
  if (session !== null) body.session_id = session;
  return draft;
}

function systemOf(system: MessagesBody['system']): string {
  if (typeof system === 'string') return system;
  return (system ?? [])
    .map(wordsOfBlock)
    .filter((text) => text !== '' && !text.startsWith(BILLING_LINE))
    .join('\n\n');
}

function addTools(draft: ChatDraft, requestBody: MessagesBody, request: WireRequest): void {
  const { tools, choice, parallel, dropped } = toChatTools(requestBody, request);
  draft.dropped.push(...dropped);
  if (!draft.giveTools(tools, choice)) return;
  if (choice !== undefined) draft.body['tool_choice'] = choice;
  if (parallel !== undefined) draft.body['parallel_tool_calls'] = parallel;
}

function addThinking(draft: ChatDraft, { thinking, output_config: output }: MessagesBody): void {
  const reasoning: Record<string, unknown> = {};
  const writtenAs = thinking ? ['thinking'] : [];
  if (thinking?.type === 'enabled' && typeof thinking['budget_tokens'] === 'number')
    reasoning['max_tokens'] = thinking['budget_tokens'];
  else if (thinking) reasoning['enabled'] = thinking.type !== 'disabled';
  const effort = output?.['effort'];
  if (effort !== undefined && effort !== null) {
    if (typeof effort !== 'string' || effort.length > 32) throw invalid('output_config.effort', 'a word such as "low"');
    reasoning['effort'] = effort;
    writtenAs.push('output_config.effort');
  }
  draft.think(reasoning, writtenAs);
}

function addFormat(draft: ChatDraft, { output_config: output, output_format: older }: MessagesBody): void {
  const format = (output?.['format'] ?? older) as JsonObject | null | undefined;
  if (format === undefined || format === null) return;
  const { type, schema } = format;
  if (type !== 'json_schema') throw invalid('output_config.format.type', 'json_schema');
  if (typeof schema !== 'object' || schema === null) throw invalid('output_config.format.schema', 'a JSON schema');
  draft.answerIn(schema);
}

/**
 * Turns a conversation into chat messages. Consecutive turns of one role become one message. Tool results come
 * directly after their calls. A system message in the middle becomes text of the user, after such results.
 */
function toChatMessages({ messages }: Pick<MessagesBody, 'messages'>, request: WireRequest): ChatMessage[] {
  const chat: ChatMessage[] = [];
  let reminders: ContentPart[] = [];
  messages.forEach(({ role, content }, index) => {
    const at = `messages[${index}].content`;
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    if (role === 'system') reminders.push(...reminderOf(blocks.map(wordsOfBlock).join(GAP)));
    else if (role === 'assistant') {
      // A system message before an answer stays before that answer.
      addUser(chat, reminders);
      reminders = [];
      addAssistant(chat, blocks, at, request);
    } else {
      addUser(chat, [...userParts(chat, blocks, at, request), ...reminders]);
      reminders = [];
    }
  });
  addUser(chat, reminders);
  return chat;
}

/** The parts of a user's turn. Its tool results are added to `chat`. */
function userParts(chat: ChatMessage[], blocks: readonly Block[], at: string, request: WireRequest): ContentPart[] {
  const parts: ContentPart[] = [];
  const ofResults: ContentPart[] = [];
  blocks.forEach((block, index) => {
    const here = `${at}[${index}]`;
    switch (block.type) {
      case 'text':
        if (typeof block['text'] !== 'string') throw invalid(`${here}.text`, 'a string');
        if (block['text'] !== '') parts.push({ type: 'text', text: block['text'] });
        break;
      case 'image':
      case 'document':
        parts.push(partOfSource(block, here));
        break;
      case 'tool_result':
        addResult(chat, resultOf(block, here, ofResults, request));
        break;
      default: {
        const text = wordsInstead(block, request);
        if (text !== '') parts.push({ type: 'text', text });
      }
    }
  });
  return [...ofResults, ...parts];
}

/** A tool result. Chat models take no images in it, so its images are added to `pictures`, for the message after it. */
function resultOf(block: Block, at: string, pictures: ContentPart[], request: WireRequest): ChatMessage {
  const { tool_use_id: callId, content, is_error: failed } = block;
  if (typeof callId !== 'string' || callId === '') throw invalid(`${at}.tool_use_id`, 'the id of a tool_use block');
  const { id } = request.seals.call(callId);
  const texts: string[] = [];
  if (typeof content === 'string') texts.push(content);
  else if (Array.isArray(content))
    (content as readonly Block[]).forEach((part, index) => {
      const here = `${at}.content[${index}]`;
      if (typeof part !== 'object' || part === null || typeof part.type !== 'string')
        throw invalid(here, 'a block such as {"type": "text", "text": "…"}');
      if (part.type !== 'image' && part.type !== 'document') return void texts.push(wordsInstead(part, request));
      const contentPart = partOfSource(part, here);
      if (contentPart.type === 'text') return void texts.push(contentPart.text!);
      texts.push(`[${part.type}: see the next message]`);
      pictures.push({ type: 'text', text: `The ${part.type} of tool result ${id}:` }, contentPart);
    });
  else if (content !== undefined && content !== null) throw invalid(`${at}.content`, 'a string or an array of blocks');
  const text = texts.filter((one) => one !== '').join('\n');
  return { role: 'tool', tool_call_id: id, content: failed === true ? `Error: ${text}` : text };
}

function addAssistant(chat: ChatMessage[], blocks: readonly Block[], at: string, request: WireRequest): void {
  const texts: string[] = [];
  const thoughts = new EchoFields(Infinity);
  const calls: JsonObject[] = [];
  const members: JsonObject[] = [];
  blocks.forEach((block, index) => {
    const here = `${at}[${index}]`;
    if (block.type === 'tool_use') {
      const [call, message] = callOf(block, here, request);
      calls.push(call);
      members.push(message);
    } else if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      const { thinking, signature = block['data'] } = block;
      const thought =
        typeof signature === 'string'
          ? request.seals.thought(typeof thinking === 'string' ? thinking : '', signature)
          : null;
      if (thought !== null) thoughts.add(thought);
      else if (thinking !== '' || signature !== '') request.leftOut.add(block.type);
    } else {
      const text = wordsInstead(block, request);
      if (text !== '') texts.push(text);
    }
  });
  const last = chat.at(-1);
  const before = last?.role === 'assistant' && last['tool_calls'] === undefined ? chat.pop()! : null;
  const text = [before?.content as string | undefined, ...texts].filter((one) => one).join(GAP);
  const message: ChatMessage = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text };
  for (const name of echoMembersOf(before ?? {})) message[name] = before![name];
  joinThinking(message, thoughts.members);
  for (const one of members) addMissing(message, one);
  if (calls.length > 0) message['tool_calls'] = calls;
  chat.push(message);
}

function callOf(
  { id: callId, name, input }: Block,
  at: string,
  { toolNames, seals }: WireRequest,
): readonly [call: JsonObject, message: JsonObject] {
  if (typeof callId !== 'string' || callId === '') throw invalid(`${at}.id`, 'the id of the call');
  if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'the name of a tool');
  if (input !== undefined && (typeof input !== 'object' || input === null))
    throw invalid(`${at}.input`, 'a JSON object');
  const { id, call, message } = seals.call(callId);
  const fn = { name: toolNames.short(name), arguments: JSON.stringify(input ?? {}) };
  return [{ ...call, id, type: 'function', function: fn }, message];
}

const IMAGE_TYPE = /^image\/[a-z0-9.+-]{1,64}$/i;

/** Turns an image or a document into a part of a chat message. Throws GatewayError `invalid_request`. */
function partOfSource(block: Block, at: string): ContentPart {
  const source = (typeof block['source'] === 'object' && block['source'] !== null ? block['source'] : {}) as JsonObject;
  return block.type === 'image' ? image(source, `${at}.source`) : document(block, source, `${at}.source`);
}

function image({ type, media_type: media, data, url }: JsonObject, at: string): ContentPart {
  if (type === 'url') {
    if (typeof url !== 'string' || !/^https:\/\/\S/i.test(url)) throw invalid(`${at}.url`, 'an https URL');
    return { type: 'image_url', image_url: { url } };
  }
  if (type !== 'base64') throw stored(at, type);
  if (typeof media !== 'string' || !IMAGE_TYPE.test(media))
    throw invalid(`${at}.media_type`, 'the type of an image, such as "image/png"');
  const picture = typeof data === 'string' ? pictureOf(media, data) : null;
  if (picture === null) throw invalid(`${at}.data`, 'base64');
  return { type: 'image_url', image_url: { url: picture } };
}

function document(block: Block, { type, media_type: media, data, url, content }: JsonObject, at: string): ContentPart {
  const title = typeof block['title'] === 'string' ? block['title'] : null;
  switch (type) {
    case 'text':
      if (typeof data !== 'string') throw invalid(`${at}.data`, 'a string');
      return { type: 'text', text: titled(title, data) };
    case 'content':
      return { type: 'text', text: titled(title, typeof content === 'string' ? content : textsOf(content)) };
    case 'base64': {
      const base64 = typeof data === 'string' ? plainBase64(partsOfDataUrl(data)?.data ?? data) : null;
      if (base64 === null) throw invalid(`${at}.data`, 'base64');
      return file(title, `data:${typeof media === 'string' ? media : 'application/pdf'};base64,${base64}`);
    }
    case 'url':
      if (typeof url !== 'string' || !/^https:\/\/\S/i.test(url)) throw invalid(`${at}.url`, 'an https URL');
      return file(title, url);
    default:
      throw stored(at, type);
  }
}

const titled = (title: string | null, text: string): string =>
  title === null ? text : `<document title=${JSON.stringify(title)}>\n${text}\n</document>`;

const file = (title: string | null, data: string): ContentPart => ({
  type: 'file',
  file: { filename: title ?? 'document.pdf', file_data: data },
});

const stored = (at: string, type: unknown): GatewayError =>
  type === 'file'
    ? invalid(`${at}.type`, 'base64 or url: this gateway stores no files')
    : invalid(`${at}.type`, 'base64 or url');

function textsOf(blocks: unknown): string {
  if (!Array.isArray(blocks)) return '';
  return blocks.map(wordsOfBlock).join('\n');
}

/** The words of a block of the conversation. A block that has none is left out, and named. */
function wordsInstead(block: Block, { leftOut }: WireRequest): string {
  const words = wordsOfBlock(block);
  if (words === '' && block['text'] === undefined) leftOut.add(block.type);
  return words;
}

/**
 * Describes a block that chat models do not know as text, so that a conversation with such a block can continue.
 * Empty for a block that has no meaning outside of its own service.
 */
function wordsOfBlock(block: unknown): string {
  const { type, text, name, input, content, title, url, source, tool_name: toolName } = (block ?? {}) as JsonObject;
  if (typeof text === 'string') return text;
  switch (type) {
    case 'server_tool_use':
    case 'mcp_tool_use':
      return `[called ${String(name)} with ${JSON.stringify(input ?? {})}]`;
    case 'tool_reference':
      return `[the tool ${String(toolName)} can be called now]`;
    case 'search_result':
    case 'web_search_result':
      return `[${[title, url ?? source].filter((one) => typeof one === 'string').join(': ')}] ${textsOf(content)}`.trim();
    case 'document':
      return typeof title === 'string' ? `[document: ${title}]` : '[document]';
    case 'image':
      return '[image]';
    case 'thinking':
    case 'redacted_thinking':
    case 'compaction_delta':
      return '';
    default:
      if (typeof content === 'string') return content;
      return Array.isArray(content) ? textsOf(content) : '';
  }
}

/**
 * The end user as providers see it; always the same for the same user. It is a digest, because clients write an
 * account, a device and a session into the name, and a provider should not see these.
 */
export const userDigest = (user: string): string => hash('sha256', user).slice(0, 32);
