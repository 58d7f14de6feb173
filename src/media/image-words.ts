import { isObject } from '#wire';
import { tokenizedBytes, type Offer } from '#catalog';
import type { ImageAsk } from './request/image-ask.ts';
import { unprocessable } from './media-error.ts';

/* The words of a request for images: its prompt and its other texts. Some providers bill them by the token. */

/**
 * The most bytes of words at an offer without a price for them. Models that are billed by the image read about 500
 * tokens. A provider that bills tokens would otherwise bill many times the price of an image.
 */
const UNPRICED_BYTES_MAX = 2_000;
const BYTES_PER_TOKEN = 4;
/** Tokens of each image that a provider may count around the words. */
const AROUND_TOKENS = 64;

/** Tokens of the words, for all images of a request. Each image may be made by a call of its own. */
export interface WordTokens {
  readonly most: bigint;
  /** For a provider that reports none. */
  readonly usual: bigint;
}

/**
 * The tokens of a request's words at an offer; null if the offer has no price for them. A quote without a prompt is for
 * the longest one that needs no price. Throws GatewayError `unprocessable` for more words than go without one.
 */
export function wordTokens(ask: ImageAsk, { price, service, provider }: Offer): WordTokens | null {
  const bytes = bytesOf(ask);
  if (price.rates.prompt !== undefined) {
    const per = ask.prompt === '' ? UNPRICED_BYTES_MAX : bytes;
    const n = BigInt(ask.n);
    return { most: BigInt(per + AROUND_TOKENS) * n, usual: BigInt(Math.ceil(per / BYTES_PER_TOKEN)) * n };
  }
  if (bytes <= UNPRICED_BYTES_MAX) return null;
  throw unprocessable(
    'prompt',
    `${service} of ${provider.name} has no price for words, so it takes ${UNPRICED_BYTES_MAX} bytes of text, and the request has ${bytes}: shorten the prompt, or use another model. The operator can set pricing.prompt for the model, or 0 if its provider does not bill words`,
  );
}

function bytesOf({ prompt, more }: ImageAsk): number {
  const texts = Object.values(more).map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return [prompt, ...texts].reduce((sum, text) => sum + tokenizedBytes(text), 0);
}

/** The tokens of words that a reply reports, without those of pictures; null if it does not say. */
export function reportedWords({ usage }: Readonly<Record<string, unknown>>, edits: boolean): bigint | null {
  if (!isObject(usage)) return null;
  const { input_tokens_details: ofInput, prompt_tokens_details: ofPrompt } = usage;
  const details = [ofInput, ofPrompt].find((one) => isObject(one)) ?? {};
  const text = countOf(details['text_tokens']);
  if (text !== null) return text;
  const all = countOf(usage['input_tokens']) ?? countOf(usage['prompt_tokens']);
  const pictures = countOf(details['image_tokens']) ?? (edits ? null : 0n);
  return all === null || pictures === null || pictures > all ? null : all - pictures;
}

const countOf = (value: unknown): bigint | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? BigInt(value as number) : null;
