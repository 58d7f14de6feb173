import type { ChatBudget } from './chat-budget.ts';
import { cutMessage, textBytes, textsOf } from '../reply/message-text.ts';
import { BYTES_PER_TOKEN } from './tokens-of.ts';

type Json = Record<string, unknown>;

/**
 * The longest token of the usual tokenizers has 128 bytes (128 spaces, 64 dashes of two bytes). Apart from such
 * runs, no text comes near 16 bytes a token on average: English has 4 to 5, deeply indented code and the densest
 * scripts up to 10, tool calls 3 to 4, base64 2 to 3, emoji 2 to 4.
 */
const LONGEST_TOKEN_BYTES = 128;
const TOKEN_BYTES = 16;
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
}: Pick<ChatBudget, 'completionTokensMax' | 'keptBy'>): number {
  if (keptBy === 'gateway') return tokens * BYTES_PER_TOKEN;
  return tokens * TOKEN_BYTES + Math.min(tokens, LONG_TOKENS) * (LONGEST_TOKEN_BYTES - TOKEN_BYTES);
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

/** The discount for runs in texts. */
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
export function cutChoices(choices: readonly Json[], outputBytes: number, budget: ChatBudget): Json[] | null {
  const bytesMax = outputBytesMax(budget);
  if (outputBytes <= bytesMax) return null;
  const messages = choices.map((choice) => choice['message'] as Json);
  if (messages.reduce((bytes, message) => bytes + textBytes(message) - runDiscountOf(textsOf(message)), 0) <= bytesMax)
    return null;
  let left = bytesMax;
  return choices.map(({ index }, place) => {
    const { message, bytes } = cutMessage(messages[place]!, left);
    left -= bytes;
    return { index, message, finish_reason: 'length' };
  });
}

/** The first `room` bytes of text in the deltas of one chunk. Deltas without text in that room are left out. */
export function cutDeltas(choices: readonly Json[], room: number): Json[] {
  let left = room;
  return choices.flatMap(({ index, delta }) => {
    const { tool_calls: _, ...words } = delta as Json;
    if (left <= 0) return [];
    const { message, bytes } = cutMessage(words, left);
    left -= bytes;
    return bytes > 0 ? [{ index, delta: message, finish_reason: null }] : [];
  });
}
