import type { ChatBudget } from './chat-budget.ts';
import { cutMessage, textBytes, textsOf } from '../reply/message-text.ts';
import { BYTES_PER_TOKEN } from './tokens-of.ts';

type Json = Record<string, unknown>;

/**
 * The longest token of the usual tokenizers has 128 bytes (128 spaces, 64 dashes of two bytes). On average no text
 * but such runs comes near 16: English has 4 to 5 a token, deeply indented code and the densest scripts up to 10,
 * tool calls 3 to 4, base64 2 to 3, emoji 2 to 4.
 */
const LONGEST_TOKEN_BYTES = 128;
const TOKEN_BYTES = 16;
/** So many tokens may all be of the longest. */
const LONG_TOKENS = 16;

/**
 * The most bytes of text that a budget's tokens are; output beyond it has ignored its cap. Where the gateway itself
 * has to keep the output to the cap it is what so many tokens are on average, for else a small cap would buy
 * several times its tokens. Runs count less, see runDiscount.
 */
export function outputBytesMax({
  completionTokensMax: tokens,
  keptBy,
}: Pick<ChatBudget, 'completionTokensMax' | 'keptBy'>): number {
  if (keptBy === 'gateway') return tokens * BYTES_PER_TOKEN;
  return tokens * TOKEN_BYTES + Math.min(tokens, LONG_TOKENS) * (LONGEST_TOKEN_BYTES - TOKEN_BYTES);
}

/** A text of up to so many bytes is not looked through for runs: nearly every chunk of a stream. */
export const NO_RUN_BYTES = 16;
/**
 * A run of one to four bytes, or of six, repeats with this distance. A repeated byte counts a 32nd: 128 spaces are
 * 16 bytes then.
 */
const RUN_DISTANCE = 12;
const REPEATED_IN_ONE = 32;

/**
 * Whether what stands between two places may be a run: a look at its middle and its end, which spares nearly every
 * chunk of a stream more.
 */
export function mayBeRun(bytes: Uint8Array, start: number, end: number): boolean {
  const middle = (start + end) >> 1;
  return bytes[middle] === bytes[middle - RUN_DISTANCE] || bytes[end - 1] === bytes[end - 1 - RUN_DISTANCE];
}

/**
 * The discount for runs in `count` bytes of text that stand between two places of `bytes`: runs are long tokens.
 */
export function runDiscount(bytes: Uint8Array, start: number, end: number, count: number): number {
  let repeated = 0;
  for (let i = start + RUN_DISTANCE; i < end; i++) if (bytes[i] === bytes[i - RUN_DISTANCE]) repeated++;
  // Where escapes stand for characters more bytes are repeated than count.
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
 * Cuts the choices of a completion that is longer than its budget allows, one after the other; null for one that
 * fits. A cut choice keeps only its text, as log probabilities and a provider's own fields repeat the whole text.
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

/** The words of the deltas of one chunk, as many as `room` bytes have, for those that have any. */
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
