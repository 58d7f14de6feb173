import { GatewayError } from '#errors';
import { foldName, RawJsonError, splice, uniqueMembersOf, withMembers, isObject } from '#wire';
import { NO_REFUSALS, type RefusedFields } from '#call/refused-fields';
import { TextSize, type Offer } from '#catalog';
import type { NativeCap, NativeRequestFacts, Lists, Passthrough, Pictures } from './passthrough.ts';
import {
  boundedField,
  boundedReasoning,
  CAPS,
  COSTLY_TO_STRANGERS,
  FOR_ANOTHER_ROUTER,
  FOR_THE_GATEWAY,
  isPaidTier,
  MORE_COMPLETIONS,
  REDIRECTING,
} from '../chat/request/forwarded-body.ts';
import { listed, OUTPUT_FIELDS, paidBy } from '../chat/price/paid-extras.ts';
import type { PromptSize } from '../chat/request/prompt-size.ts';
import { NO_SOUND } from '../chat/request/sound.ts';

interface NativeBody {
  readonly text: string;
  /** Names of the fields that the provider does not get, except fields for the gateway. */
  readonly dropped: readonly string[];
  /** Names of the fields that the gateway itself has added, except the cap. */
  readonly added: readonly string[];
}

/**
 * The client's body for `offer`, with the provider's name of the model. No field asks for more output than the cap.
 * Throws GatewayError `invalid_request` for a duplicate key at any level.
 */
export function nativeBody(
  native: NativeRequestFacts,
  offer: Offer,
  cap: NativeCap,
  refused: RefusedFields = NO_REFUSALS,
): NativeBody {
  const { wire, text, requestBody, fewerTools } = native;
  const changes: Record<string, string | null> = fewerTools ? { tools: JSON.stringify(requestBody['tools']) } : {};
  const dropped: string[] = [];
  const lists = listsOf(offer);
  const changed = wire.changed(requestBody, text, lists, offer, refused);
  Object.assign(changes, changed.sent);
  dropped.push(...changed.dropped);
  for (const field of Object.keys(requestBody)) {
    if (wire.addressed?.has(field)) changes[field] = null;
    else if (FOR_THE_GATEWAY.has(field) && field !== 'metadata') changes[field] = null;
    else if (field !== wire.cap && !isPaidTier(offer, field, requestBody[field]) && !goes(field, wire, offer, lists)) {
      changes[field] = null;
      if (requestBody[field] !== null) dropped.push(field);
    } else if (field !== wire.cap) boundField(field, wire, { requestBody, offer, cap: cap.tokens, changes, dropped });
  }
  if (!wire.addressed?.has('model')) changes['model'] = JSON.stringify(offer.model!.upstreamModel);
  if (wire.capped !== undefined) {
    const capped = wire.capped(requestBody, cap, lists);
    Object.assign(changes, capped.sent);
    dropped.push(...capped.dropped);
  } else if (cap.isSet) changes[wire.cap] = String(cap.tokens);
  const whole = text.trim();
  try {
    // The gateway checks the last of several values of a key, but a provider may take the first.
    const members = uniqueMembersOf(whole);
    const sent = splice(whole, [withMembers(whole, { start: 0, end: whole.length }, changes, members)]);
    return { text: sent, dropped, added: changed.added ?? [] };
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    throw new GatewayError('invalid_request', `The body cannot be forwarded: ${error.message}`, { cause: error });
  }
}

/** Whether the model of `offer` lists a name in `params.forward`. */
export const listsOf =
  (offer: Offer): Lists =>
  (name) =>
    listed(offer, name);

/**
 * Whether a field may be forwarded. Fields that ask for more than the cap, cost more than the price, or send the
 * call elsewhere may not.
 */
function goes(field: string, wire: Passthrough, { model }: Offer, lists: Lists): boolean {
  const name = foldName(field);
  // One answer is priced, so `n` is not forwarded either: these APIs do not have it, but a service may.
  if (field.includes('\0') || CAPS.has(name) || MORE_COMPLETIONS.has(name) || name === 'n') return false;
  if (lists(field)) return true;
  if (wire.fields.has(field)) return true;
  if (FOR_ANOTHER_ROUTER.has(field) || REDIRECTING.has(name) || COSTLY_TO_STRANGERS.has(name)) return false;
  // Only fields of the wire itself have a price here.
  if (paidBy(name) !== undefined || OUTPUT_FIELDS.has(name)) return false;
  return !Array.isArray(model!.forward);
}

interface Bounding {
  readonly requestBody: NativeRequestFacts['requestBody'];
  readonly offer: Offer;
  readonly cap: number;
  readonly changes: Record<string, string | null>;
  readonly dropped: string[];
}

/** Lowers what a forwarded field asks for beyond the cap, and removes members that multiply the output. */
function boundField(field: string, wire: Passthrough, { requestBody, changes, cap, ...bounding }: Bounding): void {
  const value: unknown = requestBody[field];
  if (value === null) return;
  let sent: unknown = value;
  if (!wire.fields.has(field)) sent = boundedField(field, value, { ...bounding, cap });
  else if (field === 'reasoning') sent = boundedReasoning(value, cap);
  // The bound on thinking has to be lower than that of the answer.
  else if (field === 'thinking') sent = boundedReasoning(value, Math.max(1, cap - 1));
  if (sent === undefined) {
    changes[field] = null;
    bounding.dropped.push(field);
  } else if (sent !== value && JSON.stringify(sent) !== JSON.stringify(value)) changes[field] = JSON.stringify(sent);
}

/**
 * The size of a prompt that goes to a provider as it came: all bytes of the request except those of pictures, and what
 * a tokenizer adds before it makes at most one token of each byte.
 */
export function measureNative({
  wire,
  text,
  requestBody,
}: Pick<NativeRequestFacts, 'wire' | 'text' | 'requestBody'>): PromptSize {
  const prompt = requestBody[wire.prompt];
  const pictures = wire.pictures?.(prompt) ?? picturesIn(prompt);
  const sound = wire.sound === undefined ? NO_SOUND : wire.sound(prompt);
  const { tools } = requestBody;
  const bytes = Buffer.byteLength(text);
  const size = new TextSize();
  // An escaped character (`\\ufdfa`) is ASCII here, and is another one for the model.
  if (bytes !== text.length || text.includes('\\u')) size.addNormalised(requestBody);
  return {
    bytes: Math.max(0, bytes - pictures.bytes),
    added: size.added,
    messages: Array.isArray(prompt) ? prompt.length : 1,
    images: pictures.images,
    audio: false,
    sound,
    video: false,
    file: false,
    tools: Array.isArray(tools) && tools.length > 0,
    hidden: wire.hidesPrompt(requestBody),
    grows: wire.growsPrompt(requestBody),
  };
}

function picturesIn(prompt: unknown): Pictures {
  const pictures = { images: 0, bytes: 0 };
  collect(prompt, pictures);
  return pictures;
}

/** Whether `test` is true for an object in `value`, at any depth. */
export function holds(value: unknown, test: (object: Readonly<Record<string, unknown>>) => boolean): boolean {
  if (Array.isArray(value)) return (value as unknown[]).some((element) => holds(element, test));
  return isObject(value) && (test(value) || Object.values(value).some((member) => holds(member, test)));
}

type Collected = { -readonly [name in keyof Pictures]: Pictures[name] };

/**
 * Counts the pictures in turns, items and blocks. Pictures in other places, such as the arguments of a tool call,
 * are data that a model reads as text.
 */
function collect(parts: unknown, pictures: Collected): void {
  if (!Array.isArray(parts)) return;
  for (const part of parts as unknown[]) {
    if (!isObject(part)) continue;
    const { type, content, output, source } = part;
    switch (type) {
      case 'image':
        add(pictures, isObject(source) ? bytesOfSource(source) : 0);
        break;
      case 'input_image':
      case 'computer_screenshot':
        add(pictures, bytesOfDataUrl(part['image_url']));
        break;
      case 'document':
        if (isObject(source) && source['type'] === 'content') collect(source['content'], pictures);
        break;
      case undefined:
      case 'message':
      case 'tool_result':
        collect(content, pictures);
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'computer_call_output':
        collect(Array.isArray(output) ? output : [output], pictures);
        break;
    }
  }
}

function add(pictures: Collected, bytes: number): void {
  pictures.images++;
  pictures.bytes += bytes;
}

/** The bytes of a picture in base64. Anything else counts as text. */
function bytesOfSource({ type, media_type: media, data }: Readonly<Record<string, unknown>>): number {
  const isPicture = type === 'base64' && typeof media === 'string' && /^image\//i.test(media);
  return isPicture && typeof data === 'string' && BASE64.test(data) ? data.length : 0;
}

function bytesOfDataUrl(url: unknown): number {
  const head = typeof url === 'string' ? DATA_URL.exec(url)?.[0] : undefined;
  if (head === undefined) return 0;
  const data = (url as string).slice(head.length);
  return BASE64.test(data) ? data.length : 0;
}

const DATA_URL = /^data:image\/[\w.+-]{1,64};base64,/i;
const BASE64 = /^[\w+/=-]*$/;
