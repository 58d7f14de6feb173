import type { ChatBudget } from '../request/chat-budget.ts';
import { BYTES_PER_TOKEN } from '../request/prompt-size.ts';

/* The output of a model in bytes: how many a budget allows, how many a text counts, and how a text is cut to them. */

/**
 * The longest token of the usual tokenizers has 128 bytes (128 spaces, 64 dashes of two bytes). Apart from such
 * runs, ordinary text stays below 16 bytes a token on average: English has 4 to 5, deeply indented code and the densest
 * scripts up to 10, tool calls 3 to 4, base64 2 to 3, emoji 2 to 4.
 */
const LONGEST_TOKEN_BYTES = 128;
const TOKEN_BYTES = 16;
/**
 * A prompt can ask for one long word again and again: ` государственной` is one token of o200k_base with 31 bytes. A
 * vendor that obeys has kept the cap, so the bound at the operator's own provider is above every word.
 */
const WORD_BYTES = 48;
/** This many tokens may all have the greatest length. */
const LONG_TOKENS = 16;

/**
 * The most bytes of text that the tokens of a budget can have. Longer output has ignored its cap. If the gateway
 * itself enforces the cap, the average size of a token counts instead, because otherwise a small cap would buy
 * several times its tokens. Runs count less, see runDiscount.
 */
export function outputBytesMax({
  completionTokensMax: tokens,
  keptBy,
  own,
}: Pick<ChatBudget, 'completionTokensMax' | 'keptBy' | 'own'>): number {
  if (keptBy === 'gateway') return tokens * BYTES_PER_TOKEN;
  const average = own === undefined ? TOKEN_BYTES : WORD_BYTES;
  return tokens * average + Math.min(tokens, LONG_TOKENS) * (LONGEST_TOKEN_BYTES - average);
}

/** A text of at most this many bytes is not searched for runs. Nearly every chunk of a stream is that short. */
export const NO_RUN_BYTES = 16;
/**
 * A run that repeats 1, 2, 3, 4 or 6 bytes also repeats at this distance. A repeated byte counts as a 32nd of a
 * byte, so 128 spaces count as 16 bytes.
 */
const RUN_DISTANCE = 12;
const REPEATED_IN_ONE = 32;

/**
 * Whether the bytes between two places may be a run. It checks only the middle and the end, so nearly every chunk of
 * a stream avoids the full search.
 */
export function mayBeRun(bytes: Uint8Array, start: number, end: number): boolean {
  const middle = (start + end) >> 1;
  return bytes[middle] === bytes[middle - RUN_DISTANCE] || bytes[end - 1] === bytes[end - 1 - RUN_DISTANCE];
}

/**
 * The discount for runs in the bytes from `start` to `end`, which hold `count` bytes of text. Runs get a discount
 * because they become long tokens.
 */
export function runDiscount(bytes: Uint8Array, start: number, end: number, count: number): number {
  let repeated = 0;
  for (let i = start + RUN_DISTANCE; i < end; i++) if (bytes[i] === bytes[i - RUN_DISTANCE]) repeated++;
  // With escapes, more bytes can repeat than the text has.
  return Math.floor((Math.min(repeated, count) * (REPEATED_IN_ONE - 1)) / REPEATED_IN_ONE);
}

export function runDiscountOf(texts: Iterable<string>): number {
  let discount = 0;
  for (const text of texts) {
    if (text.length <= NO_RUN_BYTES) continue;
    const bytes = Buffer.from(text);
    discount += runDiscount(bytes, 0, bytes.length, bytes.length);
  }
  return discount;
}

/**
 * Cuts the choices of a completion that is longer than its budget allows, in their order. Returns null if the
 * completion fits. A cut choice keeps only its text, because log probabilities and a provider's own fields repeat
 * the whole text.
 */
export function cutChoices(
  choices: readonly Record<string, unknown>[],
  outputBytes: number,
  budget: ChatBudget,
): Record<string, unknown>[] | null {
  const bytesMax = outputBytesMax(budget);
  if (outputBytes <= bytesMax) return null;
  const messages = choices.map((choice) => choice['message'] as Record<string, unknown>);
  if (messages.reduce((bytes, message) => bytes + textBytes(message) - runDiscountOf(textsOf(message)), 0) <= bytesMax)
    return null;
  let bytesLeft = bytesMax;
  return choices.map(({ index }, place) => {
    const { message, bytes } = cutMessage(messages[place]!, bytesLeft);
    bytesLeft -= bytes;
    return { index, message, finish_reason: 'length' };
  });
}

/** The first `room` bytes of text in the deltas of one chunk. Deltas without text in that room are left out. */
export function cutDeltas(choices: readonly Record<string, unknown>[], room: number): Record<string, unknown>[] {
  let bytesLeft = room;
  return choices.flatMap(({ index, delta }) => {
    const { tool_calls: _, ...words } = delta as Record<string, unknown>;
    if (bytesLeft <= 0) return [];
    const { message, bytes } = cutMessage(words, bytesLeft);
    bytesLeft -= bytes;
    return bytes > 0 ? [{ index, delta: message, finish_reason: null }] : [];
  });
}

/** The output of a stream so far, which is compared with its budget. */
export interface OutputCounter {
  /** The maximum of `bytes` minus `discount`. */
  readonly bytesMax: number;
  bytes: number;
  /** How many of `bytes` do not count towards the maximum, because runs become long tokens. */
  discount: number;
  otherBytes: number;
  pictures: number;
  soundBytes: number;
}

export function createOutputCounter(budget: ChatBudget): OutputCounter {
  return { bytesMax: outputBytesMax(budget), bytes: 0, discount: 0, otherBytes: 0, pictures: 0, soundBytes: 0 };
}

/** Bytes of output that are still allowed; negative when the output ran past its budget. */
export const roomOf = (counter: OutputCounter): number => counter.bytesMax - (counter.bytes - counter.discount);

/** The members that hold a model's text, under the names that servers use. */
const TEXT_KEYS = ['content', 'reasoning', 'reasoning_content', 'refusal'];
/** Some servers send the same reasoning under both names. It counts once. */
const saidTwice = (key: string, message: Record<string, unknown>): boolean =>
  key === 'reasoning_content' && message[key] === message['reasoning'];

/**
 * Members with other output, which has many bytes for its price: sound and pictures in base64, reasoning in a
 * provider's own format.
 */
const OTHER_KEYS = ['audio', 'images', 'reasoning_details'];

/** An allowance for the tokens around a tool call that no reply shows: at most 32, each counted as one byte. */
const CALL_FRAME_BYTES = 32;

/** Bytes of text in a message or a delta, as far as they can be counted. */
export function textBytes(message: Record<string, unknown>): number {
  let bytes = 0;
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) continue;
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
  }
  const calls = message['tool_calls'];
  if (Array.isArray(calls))
    for (const call of calls as unknown[])
      bytes += functionBytes((call as Record<string, unknown> | null)?.['function']);
  return bytes + functionBytes(message['function_call']);
}

function functionBytes(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const { name, arguments: argumentValue } = value as Record<string, unknown>;
  return (
    (typeof name === 'string' ? Buffer.byteLength(name) : 0) +
    (typeof argumentValue === 'string' ? Buffer.byteLength(argumentValue) : 0)
  );
}

/** The bytes of a message or a delta that are output but not text, with the allowance for each tool call. */
export function otherBytes(message: Record<string, unknown>): number {
  let bytes = 0;
  for (const key of OTHER_KEYS) {
    const value = message[key];
    if (typeof value === 'object' && value !== null) bytes += Buffer.byteLength(JSON.stringify(value));
  }
  const calls = message['tool_calls'];
  // Only the first delta of a call has a name, so each call counts once.
  if (Array.isArray(calls))
    for (const call of calls as unknown[])
      if (nameOf((call as Record<string, unknown> | null)?.['function'])) bytes += CALL_FRAME_BYTES;
  return nameOf(message['function_call']) ? bytes + CALL_FRAME_BYTES : bytes;
}

export function addMedia(
  { images, audio }: Record<string, unknown>,
  counter: Pick<OutputCounter, 'pictures' | 'soundBytes'>,
): void {
  if (Array.isArray(images)) counter.pictures += images.length;
  const data = (audio as Record<string, unknown> | null | undefined)?.['data'];
  if (typeof data === 'string') counter.soundBytes += bytesOfBase64(data);
}

export const bytesOfBase64Length = (chars: number): number => Math.floor((chars * 3) / 4);
export const bytesOfBase64 = (base64: string): number => bytesOfBase64Length(base64.length);

const nameOf = (fn: unknown): unknown => (fn as Record<string, unknown> | null | undefined)?.['name'];

export function* textsOf(message: Record<string, unknown>): Generator<string> {
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) continue;
    if (typeof value === 'string') yield value;
  }
  const calls = message['tool_calls'];
  for (const call of [...(Array.isArray(calls) ? (calls as unknown[]) : []), { function: message['function_call'] }]) {
    const argumentValue = (
      (call as Record<string, unknown> | null)?.['function'] as Record<string, unknown> | null | undefined
    )?.['arguments'];
    if (typeof argumentValue === 'string') yield argumentValue;
  }
}

/**
 * The beginning of a message: `bytesMax` bytes of its text. Members that could hold the rest in another form are
 * left out.
 */
function cutMessage(
  message: Record<string, unknown>,
  bytesMax: number,
): { readonly message: Record<string, unknown>; readonly bytes: number } {
  let bytesLeft = bytesMax;
  const take = (text: string): string => {
    const cutText = firstBytes(text, bytesLeft);
    bytesLeft -= Buffer.byteLength(cutText);
    return cutText;
  };
  const cut: Record<string, unknown> = { role: message['role'] ?? 'assistant' };
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) {
      if (value !== undefined) cut[key] = cut['reasoning'];
    } else if (typeof value === 'string') cut[key] = take(value);
    else if (key === 'content') cut[key] = null;
  }
  const calls: Record<string, unknown>[] = [];
  for (const call of Array.isArray(message['tool_calls'])
    ? (message['tool_calls'] as (Record<string, unknown> | null)[])
    : []) {
    const fn = call?.['function'] as Record<string, unknown> | null | undefined;
    const { name, arguments: argumentValue } = fn ?? {};
    if (typeof name !== 'string' || (bytesLeft -= Buffer.byteLength(name)) <= 0) break;
    calls.push({
      id: call!['id'],
      type: 'function',
      function: { name, arguments: typeof argumentValue === 'string' ? take(argumentValue) : '' },
    });
  }
  if (calls.length > 0) cut['tool_calls'] = calls;
  return { message: cut, bytes: bytesMax - Math.max(0, bytesLeft) };
}

/** As many whole characters as fit into `bytesMax` bytes. */
export function firstBytes(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const bytes = Buffer.from(text.slice(0, Math.max(0, bytesMax)));
  let end = Math.min(bytes.length, Math.max(0, bytesMax));
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
