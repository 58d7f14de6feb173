import { isObject } from '#wire';
import {
  BOUNDS,
  failedByItsOwnWords,
  lastObjectIn,
  malformed,
  parseReplyObject,
  readReplyObject,
  tooLarge,
  type JsonLimits,
} from '#wire/replies';
import type { ReplyEnd } from '#gateway';
import { type ChatResult, completeEnd, type Produced, type ReplyContext } from './chat-end.ts';
import type { Output } from './chat-usage.ts';
import {
  addMedia,
  bytesOfBase64Length,
  otherBytes,
  textBytes,
  cutChoices,
  outputBytesMax,
  firstBytes,
} from './output-bound.ts';

/* A reply in one piece: parsed as a whole, or read as far as it came. */

type Json = Record<string, unknown>;

/** The form in which a whole reply goes out: as a completion, or as the one chunk of a stream. */
export type ReplyForm = 'completion' | 'chunk';

/** The end of a reply that is not streamed. Throws UpstreamFailure for anything that is not a completion. */
export function endHere(
  context: ReplyContext,
  bytes: Uint8Array,
  form: ReplyForm,
  limits: JsonLimits = BOUNDS.reply,
): ReplyEnd<ChatResult> {
  const produced = readCompletion(context, parseReply(bytes, limits));
  return completeEnd(context, form === 'chunk' ? asChunk(produced) : produced);
}

/** Parses a provider's JSON. Throws UpstreamFailure if it is not an object, or if the object reports an error. */
export function parseReply(bytes: Uint8Array, limits: JsonLimits = BOUNDS.reply): Json {
  return unlessError(parseReplyObject(bytes, limits, tooMuch));
}

/** As parseReply, for a reply that may be large. It is parsed over several turns of the event loop. */
export const readReply = async (bytes: Buffer): Promise<Json> =>
  unlessError(await readReplyObject(bytes, BOUNDS.reply, tooMuch));

/** The request may have caused so much structure. */
const tooMuch = (what: string, cause: unknown) => tooLarge(what, { cause });

function unlessError(reply: Json): Json {
  if (reply['error']) throw failedByItsOwnWords(reply['error']);
  return reply;
}

/**
 * Checks and completes a whole completion, in place. Throws UpstreamFailure if it has no choices, or a choice
 * without a message.
 */
function readCompletion(context: ReplyContext, reply: Json): Produced {
  const { choices } = reply;
  if (!Array.isArray(choices) || choices.length === 0) throw malformed('its reply has no choices');
  const finishReasons: string[] = [];
  let outputBytes = 0;
  let unworded = 0;
  const media = { pictures: 0, soundBytes: 0 };
  choices.forEach((item: unknown, position) => {
    const choice = item as Json | null;
    const message = choice?.['message'];
    if (typeof choice !== 'object' || choice === null || typeof message !== 'object' || message === null)
      throw malformed('its reply has a choice without a message');
    if (typeof choice['index'] !== 'number') choice['index'] = position;
    // Some providers put the finish reason beside the choices.
    if (!choice['finish_reason'] && typeof reply['finish_reason'] === 'string')
      choice['finish_reason'] = reply['finish_reason'];
    choice['finish_reason'] ??= null;
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '')
      finishReasons.push(choice['finish_reason']);
    outputBytes += textBytes(message as Json);
    unworded += otherBytes(message as Json);
    addMedia(message as Json, media);
  });
  if (reply['finish_reason'] !== undefined) reply['finish_reason'] = undefined;
  const claim = reply['usage'];
  reply['id'] = context.callId;
  reply['object'] = 'chat.completion';
  if (typeof reply['created'] !== 'number') reply['created'] = context.created;
  reply['model'] = context.service;
  reply['provider'] = context.provider;
  reply['system_fingerprint'] ??= null;
  const cut = cutChoices(choices as Json[], outputBytes, context.budget);
  const { id, object, created, model, provider, system_fingerprint } = reply;
  const body = cut === null ? reply : { id, object, created, model, provider, system_fingerprint, choices: cut };
  return {
    body,
    before: null,
    claim,
    serviceTier: reply['service_tier'],
    outputBytes,
    otherBytes: unworded,
    ...media,
    finishReasons,
    choices: choices.length,
    malformed: false,
    overCap: cut !== null,
  };
}

/** A tool call in the form of a stream: with its index, an id, and its arguments as text. */
function asDelta(call: Readonly<Record<string, unknown>>, index: number, completion: unknown): Json {
  const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : `call_${String(completion)}_${index}`;
  const { function: named } = call;
  if (!isObject(named)) return { ...call, index, id };
  const { arguments: given = '' } = named;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  return { ...call, index, id, function: { ...named, arguments: text } };
}

/** A whole completion as the one chunk of a stream. */
export function asChunk(produced: Produced): Produced {
  const choices = (produced.body['choices'] as Json[]).map(({ message, ...choice }) => {
    const { tool_calls: calls, ...delta } = message as Json;
    const indexed = Array.isArray(calls)
      ? { tool_calls: calls.filter(isObject).map((call, index) => asDelta(call, index, produced.body['id'])) }
      : {};
    return { ...choice, delta: { ...delta, ...indexed } };
  });
  const { system_fingerprint: fingerprint, ...body } = produced.body;
  const known = fingerprint === null ? {} : { system_fingerprint: fingerprint };
  return { ...produced, body: { ...body, ...known, object: 'chat.completion.chunk', choices } };
}

/**
 * Completes a whole completion, in place, with the members that OpenAI's API always sends, and that clients in strict
 * languages require. Many providers leave them out. A `system_fingerprint` that is null, which other clients require,
 * does not occur in that API.
 */
export function completeStrictly(body: Json): void {
  if (body['system_fingerprint'] === null) body['system_fingerprint'] = undefined;
  const { choices } = body;
  if (!Array.isArray(choices)) return;
  for (const choice of choices as readonly Json[]) {
    choice['logprobs'] ??= null;
    const { message } = choice;
    if (!isObject(message)) continue;
    const said = message as Json;
    said['content'] ??= null;
    said['refusal'] ??= null;
  }
}

const keysOf = (keys: readonly string[]) => keys.map((key) => ({ key, bytes: Buffer.from(`"${key}":`) }));

/** The keys of a model's text. */
const KEYS = keysOf(['content', 'reasoning', 'reasoning_content', 'refusal', 'arguments']);
/** The keys of a model's text on other wires. */
const NATIVE_KEYS = keysOf(['text', 'thinking', 'refusal', 'arguments']);

/**
 * Reads a native reply that is not streamed and was cut. `said` is its visible text as far as it came. `outputBytes`
 * counts all its output.
 */
export function partialTexts(bytes: Buffer): { readonly said: string; readonly outputBytes: number } {
  let said = '';
  let outputBytes = 0;
  for (const { key, bytes: needle } of NATIVE_KEYS)
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
      const text = textAt(bytes, at + needle.length);
      outputBytes += Buffer.byteLength(text);
      if (key === 'text') said += text;
    }
  return { said, outputBytes };
}

/** The keys of pictures and sound: those of chat, of Gemini and of Responses. */
const MEDIA_KEYS = keysOf(['url', 'data', 'result']);
/** The beginnings of PNG, JPEG, WebP and GIF in base64. */
const PICTURE = /^(?:data:image\/|iVBOR|\/9j\/|UklGR|R0lGOD)/;
const BEGINNING_CHARS = 16;

/** The pictures and the sound of a reply that is not streamed and was cut, as far as they came. */
export function partialMedia(bytes: Buffer): Required<Pick<Output, 'otherBytes' | 'pictures' | 'soundBytes'>> {
  const media = { otherBytes: 0, pictures: 0, soundBytes: 0 };
  for (const { key, bytes: needle } of MEDIA_KEYS)
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
      let start = at + needle.length;
      while (SPACES.has(bytes[start])) start++;
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
const BACKSLASH = 0x5c;
const SPACES: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Reads a completion that is not streamed, and that was cut or has more structure than is parsed. Each text, as far
 * as it came, becomes a choice that ended by its length. The claim is read if it came, also in the `rest` of a reply
 * that was given up for its size. Keys are found by their bytes. A key inside a text is not taken for a key, because
 * its quotes are escaped.
 */
export function partialReply(
  { callId, created, service, provider, budget }: ReplyContext,
  bytes: Buffer,
  rest?: Buffer,
): Produced {
  const texts: string[] = [];
  let room = outputBytesMax(budget);
  let outputBytes = 0;
  // Some servers send the same reasoning under both names. It counts once.
  const reasoning = new Set<string>();
  for (const { key, bytes: needle } of KEYS) {
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
      const text = textAt(bytes, at + needle.length);
      if (key === 'reasoning') reasoning.add(text);
      if (key === 'reasoning_content' && reasoning.has(text)) continue;
      outputBytes += Buffer.byteLength(text);
      if (key !== 'content' || text === '') continue;
      const taken = firstBytes(text, room);
      texts.push(taken);
      room -= Buffer.byteLength(taken);
    }
  }
  const choices = (texts.length > 0 ? texts : ['']).map((content, index) => ({
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
    claim: lastObjectIn(bytes, 'usage', rest),
    outputBytes,
    ...partialMedia(bytes),
    finishReasons: [],
    choices: choices.length,
    malformed: false,
    overCap: false,
  };
}

/** The JSON string that begins here, as far as it came; empty if another value begins here. */
function textAt(bytes: Buffer, from: number): string {
  let start = from;
  while (SPACES.has(bytes[start])) start++;
  if (bytes[start] !== QUOTE) return '';
  start++;
  let end = start;
  for (;;) {
    end = bytes.indexOf(QUOTE, end);
    if (end === -1) break;
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) break;
    end++;
  }
  // A character or an escape that was cut is left out.
  const raw = new TextDecoder().decode(bytes.subarray(start, end === -1 ? bytes.length : end), { stream: end === -1 });
  const text = end === -1 ? withoutBrokenEscape(raw) : raw;
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
