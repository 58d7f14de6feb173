import { foldName } from '#wire';
import { asksHour } from './cache-times.ts';
import type { ChatBody, ChatMessage, ContentPart } from '../chat-schema.ts';
import { asksForSound, chatExtras, paidBy } from './paid-extras.ts';
import { type AskedParts, NO_SEARCHES } from './priced-parts.ts';

/**
 * The parts that a chat request asks for besides text. Names of fields are folded, because some servers fold them, and
 * the operator's own models get all fields.
 */
export function askedParts(body: ChatBody): AskedParts {
  const extras = chatExtras(body);
  let searches = extras.some(({ meter }) => meter === 'web_search');
  let unsaid = 0;
  for (const field in body) {
    const value = body[field];
    if (value === undefined || value === null || value === false) continue;
    const name = foldName(field);
    if (paidBy(name) !== 'web_search') continue;
    searches = true;
    // OpenAI's models search once for each request, and do not say so.
    if (name === 'websearchoptions') unsaid = 1;
  }
  return {
    audio: body.messages.some(mayHaveSound),
    audioOutput: asksForSound(extras),
    cacheHour: () => asksHour(body),
    // Chat has no field for a limit.
    webSearches: { ...(searches ? { sure: 0, open: 1, usual: 1 } : NO_SEARCHES), unlimited: true },
    webSearchesUnsaid: unsaid,
  };
}

/** Parts that are text or pictures. */
const SILENT: ReadonlySet<string> = new Set(['text', 'image_url', 'refusal', 'thinking', 'redacted_thinking']);
const SOUND = /audio|video|file|sound/;

/** Whether a message may have tokens of sound: a recording, a video, a file, or an earlier spoken answer. */
function mayHaveSound(message: ChatMessage): boolean {
  const { content } = message;
  if (Array.isArray(content) && content.some(isSound)) return true;
  return Object.keys(message).some((field) => field !== 'content' && SOUND.test(foldName(field)));
}

const isSound = (part: ContentPart): boolean =>
  !SILENT.has(part.type) || Object.keys(part).some((name) => SOUND.test(foldName(name)));
