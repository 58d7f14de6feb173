import type { ChatMessage, ContentPart } from '../chat/chat-schema.ts';
import { addMissing, addResult, addUser, GAP, reminderOf } from '../translated/chat-turns.ts';
import type { StartedProviderCall } from '../chat/echo-fields.ts';
import type { ToolNames } from '../translated/tool-names.ts';
import type { Block, Json, MessagesBody } from './messages-schema.ts';
import { invalid, partOfSource, wordsOfBlock } from './text-of-block.ts';

export interface TurnOptions {
  readonly names: ToolNames;
  /** The text of a thinking block that this gateway signed; null for another block. */
  readonly thought: (shown: string, signature: string) => string | null;
  /** The call behind an id that the client got. */
  readonly opened: (id: string) => StartedProviderCall;
}

/**
 * Turns a conversation into chat messages. Consecutive turns of one role become one message. Tool results come
 * directly after their calls. A system message in the middle becomes text of the user, after such results.
 */
export function toChatMessages({ messages }: Pick<MessagesBody, 'messages'>, options: TurnOptions): ChatMessage[] {
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
      addAssistant(chat, blocks, at, options);
    } else {
      addUser(chat, [...userParts(chat, blocks, at, options), ...reminders]);
      reminders = [];
    }
  });
  addUser(chat, reminders);
  return chat;
}

/** The parts of a user's turn. Its tool results are added to `chat`. */
function userParts(chat: ChatMessage[], blocks: readonly Block[], at: string, { opened }: TurnOptions): ContentPart[] {
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
        addResult(chat, resultOf(block, here, ofResults, opened));
        break;
      default: {
        const text = wordsOfBlock(block);
        if (text !== '') parts.push({ type: 'text', text });
      }
    }
  });
  return [...ofResults, ...parts];
}

/** A tool result. Chat models take no images in it, so its images are added to `shown`, for the message after it. */
function resultOf(block: Block, at: string, shown: ContentPart[], opened: TurnOptions['opened']): ChatMessage {
  const { tool_use_id: given, content, is_error: failed } = block;
  if (typeof given !== 'string' || given === '') throw invalid(`${at}.tool_use_id`, 'the id of a tool_use block');
  const { id } = opened(given);
  const texts: string[] = [];
  if (typeof content === 'string') texts.push(content);
  else if (Array.isArray(content))
    (content as readonly Block[]).forEach((part, index) => {
      const here = `${at}.content[${index}]`;
      if (typeof part !== 'object' || part === null || typeof part.type !== 'string')
        throw invalid(here, 'a block such as {"type": "text", "text": "…"}');
      if (part.type !== 'image' && part.type !== 'document') return void texts.push(wordsOfBlock(part));
      const given = partOfSource(part, here);
      if (given.type === 'text') return void texts.push(given.text!);
      texts.push(`[${part.type}: see the next message]`);
      shown.push({ type: 'text', text: `The ${part.type} of tool result ${id}:` }, given);
    });
  else if (content !== undefined && content !== null) throw invalid(`${at}.content`, 'a string or an array of blocks');
  const text = texts.filter((one) => one !== '').join('\n');
  return { role: 'tool', tool_call_id: id, content: failed === true ? `Error: ${text}` : text };
}

function addAssistant(chat: ChatMessage[], blocks: readonly Block[], at: string, options: TurnOptions): void {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: Json[] = [];
  const members: Json[] = [];
  blocks.forEach((block, index) => {
    const here = `${at}[${index}]`;
    if (block.type === 'tool_use') {
      const [call, message] = callOf(block, here, options);
      calls.push(call);
      members.push(message);
    } else if (block.type === 'thinking') {
      const { thinking, signature } = block;
      const thought =
        typeof signature === 'string' ? options.thought(typeof thinking === 'string' ? thinking : '', signature) : null;
      if (thought !== null && thought !== '') thoughts.push(thought);
    } else {
      const text = wordsOfBlock(block);
      if (text !== '') texts.push(text);
    }
  });
  const last = chat.at(-1);
  const before = last?.role === 'assistant' && last['tool_calls'] === undefined ? chat.pop()! : null;
  const text = [before?.content as string | undefined, ...texts].filter((one) => one).join(GAP);
  const message: ChatMessage = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text };
  const reasoning = [before?.['reasoning_content'] as string | undefined, ...thoughts].filter((one) => one).join(GAP);
  if (reasoning !== '') message['reasoning_content'] = reasoning;
  for (const one of members) addMissing(message, one);
  if (calls.length > 0) message['tool_calls'] = calls;
  chat.push(message);
}

/** The call, and the members of its message that the provider wants back. */
function callOf(
  { id: given, name, input }: Block,
  at: string,
  { names, opened }: TurnOptions,
): readonly [call: Json, message: Json] {
  if (typeof given !== 'string' || given === '') throw invalid(`${at}.id`, 'the id of the call');
  if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'the name of a tool');
  if (input !== undefined && (typeof input !== 'object' || input === null))
    throw invalid(`${at}.input`, 'a JSON object');
  const { id, call, message } = opened(given);
  const fn = { name: names.short(name), arguments: JSON.stringify(input ?? {}) };
  return [{ ...call, id, type: 'function', function: fn }, message];
}
