import type { ChatMessage, ContentPart } from '../request/chat-schema.ts';

/** Between two texts that become one. */
export const GAP = '\n\n';

/**
 * A system message in the middle of a conversation, as text of the user's side: many chat models take no second system
 * message, and one at the top would change the beginning of every prompt.
 */
export const reminderOf = (text: string): readonly ContentPart[] =>
  text === '' ? [] : [{ type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>` }];

/** Adds to the user's turn, or begins one. */
export function addUser(chat: ChatMessage[], parts: readonly ContentPart[]): void {
  if (parts.length === 0) return;
  const last = chat.at(-1);
  if (last?.role === 'user') (last.content as ContentPart[]).push(...parts);
  else chat.push({ role: 'user', content: [...parts] });
}

/** Adds a result of a tool: directly after its calls and the results of others, whatever the user said in between. */
export function addResult(chat: ChatMessage[], result: ChatMessage): void {
  const before = chat.at(-2);
  const calls = before?.role === 'tool' || (before?.role === 'assistant' && before['tool_calls'] !== undefined);
  const parted = chat.at(-1)?.role === 'user' && calls;
  chat.splice(parted ? -1 : chat.length, 0, result);
}

/** Texts alone as one text, since many servers take no parts. */
export function inOneText(message: ChatMessage): ChatMessage {
  const { content } = message;
  if (!Array.isArray(content) || content.some((part) => part.type !== 'text')) return message;
  return { ...message, content: content.map(({ text }) => text).join(GAP) };
}
