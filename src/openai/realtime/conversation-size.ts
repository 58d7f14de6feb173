import type { Offer } from '#catalog';
import { type ChatBudget, toUsage } from '../chat/request/chat-budget.ts';
import { partsAt, type PricedParts } from '../chat/price/priced-parts.ts';
import { promptTokensMax, type PromptSize } from '../chat/request/prompt-size.ts';
import type { Usage } from '#billing/amounts';

export interface Growth {
  /** Bytes of text and of structures. A token has at least one byte. */
  readonly bytes: number;
  /** Tokens of sound, at most. */
  readonly audioTokens: number;
  readonly images: number;
  readonly items: number;
}

export const NO_GROWTH: Growth = { bytes: 0, audioTokens: 0, images: 0, items: 0 };

export const plus = (one: Growth, other: Growth): Growth => ({
  bytes: one.bytes + other.bytes,
  audioTokens: one.audioTokens + other.audioTokens,
  images: one.images + other.images,
  items: one.items + other.items,
});

/**
 * The most tokens in a second of a user's sound. OpenAI's models make one of each 100 ms of it, and hear their own
 * sound again at one of each 50 ms.
 */
export const TOKENS_PER_SECOND = 20;
/** Bytes of a second: PCM of 16 bits at 24 kHz, and the two forms of G.711, which have the fewest. */
const PCM_BYTES = 48_000;
const G711_BYTES = 8_000;

/** Bytes of a second of sound in the format that a session names. Without one it is PCM. */
export function bytesPerSecond(format: unknown): number {
  if (format === undefined || format === null) return PCM_BYTES;
  const { type, rate = 24_000 } = format as { readonly type?: unknown; readonly rate?: unknown };
  return type === 'audio/pcm' && rate === 24_000 ? PCM_BYTES : G711_BYTES;
}

/** The most tokens of sound in base64. */
export const tokensOfAudio = (base64: string, bytesOfSecond: number): number =>
  Math.ceil((base64.length * 0.75 * TOKENS_PER_SECOND) / bytesOfSecond);

/** The most that one response can use, and is locked for. */
export interface ResponseBounds {
  readonly budget: ChatBudget;
  readonly size: PromptSize;
  readonly parts: PricedParts;
  readonly audioTokensMax: number;
}

/**
 * The bounds of a response to a conversation of at most this size at an offer. `outputMax`: the cap of the response,
 * which the provider keeps.
 */
export function boundsAt(offer: Offer, grown: Growth, outputMax: number): ResponseBounds {
  const model = offer.model!;
  const hears = model.inputModalities.includes('audio');
  const speaks = model.outputModalities.includes('audio');
  const size: PromptSize = {
    bytes: grown.bytes + grown.audioTokens,
    added: 0,
    messages: grown.items,
    images: grown.images,
    audio: grown.audioTokens > 0,
    video: false,
    file: false,
    // Their words around the tools of a session are as long as those around the tools of a chat.
    tools: true,
    hidden: false,
  };
  const prompt = promptTokensMax(size, offer);
  const audioTokensMax = hears || speaks ? Math.min(grown.audioTokens, prompt) : 0;
  const { atMost, ...parts } = partsAt(offer, () => ({
    audio: audioTokensMax > 0,
    audioOutput: speaks,
  }));
  return {
    budget: {
      promptTokensMax: prompt,
      completionCap: outputMax,
      completionTokensMax: outputMax,
      keptBy: 'provider',
    },
    size,
    parts: { ...parts, atMost: audioTokensMax > 0 ? { ...atMost, audio: BigInt(audioTokensMax) } : atMost },
    audioTokensMax,
  };
}

export const usageOf = ({ budget, size, parts }: ResponseBounds): Usage => toUsage(budget, size, parts);

/** Whether a lock for `held` holds a response that may need `needed`. */
export const covers = (held: ResponseBounds, needed: ResponseBounds): boolean =>
  held.budget.promptTokensMax >= needed.budget.promptTokensMax &&
  held.budget.completionCap >= needed.budget.completionCap &&
  held.audioTokensMax >= needed.audioTokensMax &&
  held.size.images >= needed.size.images;
