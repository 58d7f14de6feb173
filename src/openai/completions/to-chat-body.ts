import type { ChatBody } from '../request/chat-schema.ts';
import { type CompletionsBody, completionsSchema } from './completions-schema.ts';

/** Fields that mean the same in a chat request. */
const COPIED: readonly string[] = [
  'stream',
  'stream_options',
  'max_tokens',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'seed',
  'stop',
  'user',
  'metadata',
  'models',
  'provider',
  'session_id',
  'max_cost',
  'max_tool_rounds',
  'tollgate',
];

/** Turns a request of the Completions API into a chat request. `dropped`: names of the fields that no provider gets. */
export function toChatBody(asked: CompletionsBody): { readonly body: ChatBody; readonly dropped: readonly string[] } {
  const content = typeof asked.prompt === 'string' ? asked.prompt : asked.prompt[0];
  const body: ChatBody = { model: asked.model, messages: [{ role: 'user', content }] };
  for (const name of COPIED) if (asked[name] !== undefined && asked[name] !== null) body[name] = asked[name];
  const dropped = Object.keys(asked).filter((name) => !Object.hasOwn(completionsSchema.properties, name));
  return { body, dropped };
}
