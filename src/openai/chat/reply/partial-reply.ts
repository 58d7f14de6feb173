import { OWN_TURN_BYTES } from '#wire';
import { lastObjectIn, readElsewhere, stringEnd } from '#wire/replies';
import type { Produced, ReplyContext } from './chat-end.ts';
import { type Output, withCounts } from './chat-usage.ts';
import { bytesOfBase64Length, firstBytes, outputBytesMax } from './output-bound.ts';

/*
 * A reply that is not streamed, and that was cut or has more structure than is parsed, read as far as it came. Keys are
 * found by their bytes. A key inside a text is not taken for a key, because its quotes are escaped.
 */

export interface PartialReply extends Required<Pick<Output, 'otherBytes' | 'pictures' | 'soundBytes'>> {
  /** The visible texts, each as far as it came. */
  readonly texts: readonly string[];
  /** Counts all text, also that of reasoning and of the arguments of tools. */
  readonly outputBytes: number;
  /** The usage that the provider reported; null if it did not come. */
  readonly claim: Readonly<Record<string, unknown>> | null;
}

interface Names {
  readonly texts: readonly string[];
  readonly visible: string;
  readonly usage: string;
}

export const CHAT_NAMES: Names = {
  texts: ['content', 'reasoning', 'reasoning_content', 'refusal', 'arguments'],
  visible: 'content',
  usage: 'usage',
};

export const nativeNames = (usage: string): Names => ({
  texts: ['text', 'thinking', 'refusal', 'arguments'],
  visible: 'text',
  usage,
});

interface PartialReading {
  readonly bytes: Uint8Array;
  readonly names: Names;
  /** The end of a reply that was given up for its size: the claim may be in it. */
  readonly rest?: Uint8Array | undefined;
}

/** The chunks of a reply so far. */
interface CollectedBytes {
  readonly bytes: number;
  giveAway(): ArrayBuffer;
}

/**
 * Reads what was collected in another thread, because text that is nothing but keys takes 10 ns for each byte. Of a
 * reply that cannot be read there nothing counts as come. null for a reply that is small: read it with `partialOf`.
 */
export function partialElsewhere(
  { readFor }: Pick<ReplyContext, 'readFor'>,
  collected: CollectedBytes,
  names: Names,
  rest: Buffer | undefined,
): Promise<PartialReply> | null {
  if (collected.bytes <= OWN_TURN_BYTES) return null;
  const bytes = collected.giveAway();
  const reading: PartialReading = { bytes: new Uint8Array(bytes), names, rest };
  const reads = readElsewhere(readFor, new URL(import.meta.url), reading, [bytes]) as Promise<PartialReply>;
  return reads.catch(() => NOTHING_CAME);
}

const NOTHING_CAME: PartialReply = {
  texts: [],
  outputBytes: 0,
  otherBytes: 0,
  pictures: 0,
  soundBytes: 0,
  claim: null,
};

/** Runs in the thread that reads large replies. */
export const run = (reading: unknown) => ({ value: partialOf(reading as PartialReading), transfer: [] });

export function partialOf({ bytes, names, rest }: PartialReading): PartialReply {
  const all = bufferOf(bytes);
  return {
    ...textsIn(all, names),
    ...mediaIn(all),
    claim: withCounts(lastObjectIn(all, names.usage, rest && bufferOf(rest))),
  };
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

function textsIn(bytes: Buffer, { texts: keys, visible }: Names): Pick<PartialReply, 'texts' | 'outputBytes'> {
  const texts: string[] = [];
  let outputBytes = 0;
  // Some servers send the same reasoning under both names. It counts once.
  const reasoning = new Set<string>();
  for (const key of keys)
    for (const at of placesOf(key, bytes)) {
      const text = textAt(bytes, at);
      if (key === 'reasoning') reasoning.add(text);
      if (key === 'reasoning_content' && reasoning.has(text)) continue;
      outputBytes += Buffer.byteLength(text);
      if (key === visible && text !== '') texts.push(text);
    }
  return { texts, outputBytes };
}

/** The keys of pictures and sound: those of chat, of Gemini and of Responses. */
const MEDIA_KEYS = ['url', 'data', 'result'];
/** The beginnings of PNG, JPEG, WebP and GIF in base64. */
const PICTURE = /^(?:data:image\/|iVBOR|\/9j\/|UklGR|R0lGOD)/;
const BEGINNING_CHARS = 16;

function mediaIn(bytes: Buffer): Pick<PartialReply, 'otherBytes' | 'pictures' | 'soundBytes'> {
  const media = { otherBytes: 0, pictures: 0, soundBytes: 0 };
  for (const key of MEDIA_KEYS)
    for (const start of placesOf(key, bytes)) {
      if (bytes[start] !== QUOTE) continue;
      // Base64 has no escapes.
      const end = bytes.indexOf(QUOTE, start + 1);
      const length = (end === -1 ? bytes.length : end) - start - 1;
      const isPicture = PICTURE.test(bytes.toString('latin1', start + 1, start + 1 + BEGINNING_CHARS));
      if (!isPicture && key !== 'data') continue;
      media.otherBytes += length;
      if (isPicture) media.pictures += 1;
      else media.soundBytes += bytesOfBase64Length(length);
    }
  return media;
}

const QUOTE = 0x22;
const SPACES: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

function* placesOf(key: string, bytes: Buffer): Generator<number, void, undefined> {
  const needle = Buffer.from(`"${key}":`);
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
    let start = at + needle.length;
    while (SPACES.has(bytes[start])) start++;
    yield start;
  }
}

/**
 * A completion of what came of a chat reply. Each text becomes a choice that ended by its length, as far as the budget
 * reaches.
 */
export function partialCompletion(
  { callId, created, service, provider, budget }: ReplyContext,
  { texts, ...came }: PartialReply,
): Produced {
  let room = outputBytesMax(budget);
  const cutTexts = texts.map((text) => {
    const part = firstBytes(text, room);
    room -= Buffer.byteLength(part);
    return part;
  });
  const choices = (cutTexts.length > 0 ? cutTexts : ['']).map((content, index) => ({
    index,
    message: { role: 'assistant', content },
    finish_reason: 'length',
  }));
  const body = {
    id: callId,
    object: 'chat.completion',
    created,
    model: service,
    provider,
    system_fingerprint: null,
    choices,
  };
  return {
    body,
    before: null,
    ...came,
    finishReasons: [],
    choices: choices.length,
    malformed: false,
    overCap: false,
  };
}

/** The JSON string that begins here, as far as it came; empty if another value begins here. */
function textAt(bytes: Buffer, from: number): string {
  if (bytes[from] !== QUOTE) return '';
  const start = from + 1;
  const end = stringEnd(bytes, start, Infinity);
  const isCut = end < 0;
  // A character or an escape that was cut is left out.
  const raw = new TextDecoder().decode(bytes.subarray(start, isCut ? bytes.length : end), { stream: isCut });
  const text = isCut ? withoutBrokenEscape(raw) : raw;
  try {
    return (JSON.parse(`"${text}"`) as string).toWellFormed();
  } catch {
    return text.toWellFormed();
  }
}

/** Removes an incomplete escape at the end: `\`, `\\u`, `\\u12`. */
function withoutBrokenEscape(text: string): string {
  const digits = /u[0-9a-fA-F]{0,3}$/.exec(text.slice(-4))?.[0].length ?? 0;
  for (const end of [text.length, text.length - digits]) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 1) return text.slice(0, end - 1);
  }
  return text;
}
