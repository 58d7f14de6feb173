import { foldName, isObject } from '#wire';
import { imageTokensMax } from '#config';
import { TextSize, type Offer } from '#catalog';
import type { ChatBody, ContentPart } from '../chat-schema.ts';
import { addSound, NO_SOUND, type Sound, soundOf } from './sound.ts';
import { FOR_ANOTHER_ROUTER, FOR_THE_GATEWAY } from './forwarded-body.ts';

export interface PromptSize {
  /**
   * UTF-8 bytes of all text and of everything else except images. A tokenizer makes at most one token of each byte,
   * and of each that it adds before.
   */
  readonly bytes: number;
  readonly added: number;
  readonly messages: number;
  readonly images: number;
  readonly audio: boolean;
  /** The sound in `bytes`; null if its bytes do not bound its seconds. Default none. */
  readonly sound?: Sound | null;
  readonly video: boolean;
  /** A file that the provider has to read. */
  readonly file: boolean;
  readonly tools: boolean;
  /** The prompt has tokens that are not in the request, such as the pages of a file that the provider fetches. */
  readonly hidden: boolean;
  /** Tools that the provider runs may add to the prompt while it is answered. Absent: it runs no tools. */
  readonly grows?: boolean;
}

/**
 * Chat templates add tokens around each message, and around the whole conversation (a default system prompt, dates,
 * the preamble of tools).
 */
const TOKENS_PER_MESSAGE = 16;
const TOKENS_PER_CALL = 64;
const TOKENS_OF_TOOLS = 512;

/**
 * Fields that no provider turns into prompt tokens. All other fields count, because they may be forwarded, and some
 * servers put them into the prompt (documents, a template).
 */
const NO_PROMPT: ReadonlySet<string> = new Set([
  ...FOR_THE_GATEWAY,
  ...FOR_ANOTHER_ROUTER,
  'model',
  'messages',
  'stream',
  'stream_options',
  'stop',
  'user',
  'logit_bias',
  'tool_choice',
  'function_call',
  'modalities',
  'reasoning',
  'reasoning_effort',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'verbosity',
]);
/** Fields of a content part that are measured separately. */
const PART_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'image_url']);
/** Fields of a message that never hold images. Most messages have only these, so they skip the search. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content', 'name', 'tool_calls', 'tool_call_id']);
/** Folded names of fields in which servers take images outside of the messages. */
const IMAGES: ReadonlySet<string> = new Set([
  'image',
  'images',
  'imageurl',
  'imageurls',
  'imagedata',
  'inputimage',
  'inputimages',
]);

export function measurePrompt(body: ChatBody): PromptSize {
  const text = new TextSize();
  let images = 0;
  let audio = false;
  let video = false;
  let file = false;
  let hidden = false;
  let sound: Sound | null = NO_SOUND;
  for (const message of body.messages) {
    for (const field in message) {
      const value = message[field];
      if (typeof value === 'string') text.add(value);
      else if (field === 'content' && Array.isArray(value)) {
        for (const part of value as ContentPart[]) {
          images += imagesOf(part);
          if (part.type === 'image_url' || part.type === 'text') {
            if (part.text !== undefined) text.add(part.text);
            for (const name in part) if (!PART_FIELDS.has(name)) addValue(text, part[name]);
          } else {
            audio ||= part.type === 'input_audio' || part.type === 'audio_url';
            video ||= part.type === 'video_url';
            file ||= part.type === 'file';
            addJson(text, part);
          }
          for (const name in part) {
            if (PART_FIELDS.has(name)) continue;
            hidden ||= hidesTokens(name, part[name]);
            sound = addSound(sound, soundAt(name, part[name]));
          }
        }
      } else addJson(text, value);
      if (MESSAGE_FIELDS.has(field)) continue;
      if (isImage(field)) images += countOf(value);
      hidden ||= hidesTokens(field, value);
      sound = addSound(sound, soundAt(field, value));
    }
  }
  const tools = (body.tools?.length ?? 0) > 0 || body['functions'] !== undefined;
  for (const field in body) {
    if (NO_PROMPT.has(field)) continue;
    addValue(text, body[field]);
    if (IMAGES.has(foldName(field))) images += countOf(body[field]);
  }
  return {
    bytes: text.bytes,
    added: text.added,
    messages: body.messages.length,
    images,
    audio,
    sound,
    video,
    file,
    tools,
    hidden: hidden || sound === null,
  };
}

/**
 * The number of images in a part. The type alone does not tell, because a server may go by the members that it
 * finds.
 */
function imagesOf(part: ContentPart): number {
  let images = part.type === 'image_url' ? 1 : 0;
  for (const name in part) {
    if (name === 'type' || name === 'text' || !isImage(name)) continue;
    images = Math.max(images, countOf(part[name]));
  }
  return images;
}

const isImage = (name: string): boolean => foldName(name).includes('image');

const countOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : value === null || value === undefined ? 0 : 1;

/**
 * Whether a member of a part or of a message has tokens that are not in the request: a file that the provider fetches,
 * and the pages or pictures of a file that it unpacks. See `soundAt` for sound.
 */
function hidesTokens(name: string, value: unknown): boolean {
  if (value === null || value === undefined) return false;
  const folded = foldName(name);
  if (folded.includes('video')) return true;
  return folded.includes('file') && folded !== 'filename' && !(isObject(value) && isPlainFile(value));
}

/** The sound in a member of a part or of a message; null if the request does not bound it. */
const soundAt = (name: string, value: unknown): Sound | null =>
  value !== null && value !== undefined && foldName(name).includes('audio') ? soundOf(value) : NO_SOUND;

/** The most tokens that this prompt can have, at most the context. */
export function promptTokensMax(size: PromptSize, offer: Offer): number {
  return size.hidden || size.grows === true ? offer.model!.contextLength : tokensInRequest(size, offer);
}

/** The most tokens of the part of the prompt that is in the request, at most the context. */
export function tokensInRequest(size: PromptSize, { model, endpoint }: Offer): number {
  const tokens =
    size.bytes +
    size.added +
    TOKENS_PER_CALL +
    size.messages * TOKENS_PER_MESSAGE +
    (size.images === 0 ? 0 : size.images * imageTokensMax(model!, endpoint.kind === 'direct')) +
    (size.tools ? TOKENS_OF_TOOLS : 0);
  return Math.min(tokens, model!.contextLength);
}

/** Average bytes of a token, for estimates. A bound needs another number. */
export const BYTES_PER_TOKEN = 4;

export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Adds a text or a structure. Numbers and booleans count nothing. */
function addValue(size: TextSize, value: unknown): void {
  if (typeof value === 'string') size.add(value);
  else if (typeof value === 'object') addJson(size, value);
}

function addJson(size: TextSize, value: unknown): void {
  if (value !== undefined && value !== null) size.add(JSON.stringify(value));
}

/**
 * Whether a file is plain text in the request. The text or pages of another file may have more tokens than the
 * request has bytes.
 */
export const isPlainFile = (file: Readonly<Record<string, unknown>>): boolean => {
  const { file_data: data, file_url: url, file_id: id } = file;
  return typeof data === 'string' && /^data:text\//i.test(data) && !url && !id;
};
