import { GatewayError } from '#errors';
import type { ChatMessage, ContentPart } from '../chat/chat-schema.ts';

/* How requests of other wires become the messages of a chat request. */

/** Separates two texts that are joined. */
export const GAP = '\n\n';

/**
 * Turns a system message in the middle of a conversation into text of the user. Many chat models accept no second
 * system message, and moving it to the top would change the beginning of every prompt.
 */
export const reminderOf = (text: string): readonly ContentPart[] =>
  text === '' ? [] : [{ type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>` }];

/** Adds parts to the user's turn, or begins a turn of the user. */
export function addUser(chat: ChatMessage[], parts: readonly ContentPart[]): void {
  if (parts.length === 0) return;
  const last = chat.at(-1);
  if (last?.role === 'user') (last.content as ContentPart[]).push(...parts);
  else chat.push({ role: 'user', content: [...parts] });
}

/**
 * Adds the result of a tool directly after the tool calls and their earlier results, even if text of the user
 * already follows them.
 */
export function addResult(chat: ChatMessage[], result: ChatMessage): void {
  const before = chat.at(-2);
  const calls = before?.role === 'tool' || (before?.role === 'assistant' && before['tool_calls'] !== undefined);
  const parted = chat.at(-1)?.role === 'user' && calls;
  chat.splice(parted ? -1 : chat.length, 0, result);
}

/** Adds the members that a message does not have yet. */
export function addMissing(message: ChatMessage, members: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(members)) message[name] ??= value;
}

/** The thinking of a turn of the model, and of the turn before it that becomes the same message. */
export function joinThinking(message: ChatMessage, members: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(members)) {
    const before = message[name] ?? '';
    if (before === '') message[name] = value;
    else if (typeof before === 'string' && typeof value === 'string') message[name] = before + GAP + value;
    else if (Array.isArray(before) && Array.isArray(value))
      message[name] = [...(before as unknown[]), ...(value as unknown[])];
  }
}

/** Joins content that has only text parts into one string, because many servers take no parts. */
export function inOneText(message: ChatMessage): ChatMessage {
  const { content } = message;
  if (!Array.isArray(content) || content.some((part) => part.type !== 'text')) return message;
  return { ...message, content: content.map(({ text }) => text).join(GAP) };
}

/** Names of the fields of a request that a translation does not read. null counts as absent. */
export const unread = (requestBody: Readonly<Record<string, unknown>>, read: ReadonlySet<string>): string[] =>
  Object.keys(requestBody).filter((name) => !read.has(name) && (requestBody[name] ?? null) !== null);

/** The error for a field of another wire that has no meaning in a chat request. `right`: what the field must be. */
export const invalid = (param: string, right: string): GatewayError =>
  new GatewayError('invalid_request', `${param} must be ${right}`, { param });
