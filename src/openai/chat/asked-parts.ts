import { foldName, isObject } from '#wire';
import { asksHour } from './cache-times.ts';
import type { ChatBody, ChatMessage, ContentPart } from './chat-schema.ts';
import { type AskedParts, NO_SEARCHES } from './priced-parts.ts';

/**
 * The parts that a chat request asks for besides text. Names of fields are folded, because some servers fold them, and
 * the operator's own models get all fields.
 */
export function askedParts(body: ChatBody): AskedParts {
  let searches = false;
  let unsaid = 0;
  let audioOutput = false;
  for (const field of Object.keys(body)) {
    const value = body[field];
    if (value === undefined || value === null || value === false) continue;
    const name = foldName(field);
    if (name === 'audio') audioOutput = true;
    else if (name === 'modalities') audioOutput ||= asksForSound(value);
    else if (name === 'tools') searches ||= Array.isArray(value) && (value as unknown[]).some(isSearch);
    else if (SEARCHES.has(name)) {
      searches = true;
      // OpenAI's models search once for each request, and do not say so.
      if (name === 'websearchoptions') unsaid = 1;
    }
  }
  return {
    audio: body.messages.some(mayHaveSound),
    audioOutput,
    cacheHour: () => asksHour(body),
    // Chat has no field for a limit.
    webSearches: { ...(searches ? { sure: 0, open: 1, usual: 1 } : NO_SEARCHES), unlimited: true },
    webSearchesUnsaid: unsaid,
  };
}

/** Folded names of the fields by which services of the chat API let a model search. */
const SEARCHES: ReadonlySet<string> = new Set([
  'websearchoptions',
  'websearch',
  'searchparameters',
  'searchoptions',
  'enablesearch',
  'forcedsearch',
]);

/** Whether a tool searches at the provider. */
const isSearch = (tool: unknown): boolean =>
  isObject(tool) && typeof tool['type'] === 'string' && /search/i.test(tool['type']);

const asksForSound = (modalities: unknown): boolean =>
  !Array.isArray(modalities) || (modalities as unknown[]).some((one) => !/^(?:text|image)$/i.test(String(one)));

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
