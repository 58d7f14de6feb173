import { formatUsd, type SettledFrame, toUsdNumber } from '#billing/amounts';
import type { ImageTail } from './reply/image-reader.ts';

/* The member `usage` of answers with images, in the forms of several APIs. */

export type UsageForm = (settled: SettledFrame) => Readonly<Record<string, unknown>>;

/** The images and their cost. */
export const billedUsage = ({ tail, settlement: { charged, fee } }: SettledFrame) => ({
  images: (tail as ImageTail).images.length,
  cost: toUsdNumber(charged),
  cost_details: { charged_usd: formatUsd(charged), fee_usd: formatUsd(fee) },
});

/** The tokens that the provider counted. Nothing is charged by them. */
const countsOf = ({ tail }: SettledFrame) => ((tail as ImageTail).raw['usage'] ?? {}) as Record<string, unknown>;

/** The images and their cost, and the tokens if the provider counted any. */
export const ownUsage: UsageForm = (settled) => ({ ...countsOf(settled), ...billedUsage(settled) });

/** Clients of OpenAI's API parse the numbers of tokens. Most providers of images count none. */
const NO_TOKENS = {
  input_tokens: 0,
  input_tokens_details: { image_tokens: 0, text_tokens: 0 },
  output_tokens: 0,
  total_tokens: 0,
};

export const openaiUsage: UsageForm = (settled) => ({ ...NO_TOKENS, ...ownUsage(settled) });

export const openrouterUsage: UsageForm = (settled) => {
  const counts = countsOf(settled);
  const { cost, cost_details: details, images } = billedUsage(settled);
  const prompt = wholeOf(counts['input_tokens']) ?? wholeOf(counts['prompt_tokens']) ?? 0;
  const completion = wholeOf(counts['output_tokens']) ?? wholeOf(counts['completion_tokens']) ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: wholeOf(counts['total_tokens']) ?? prompt + completion,
    images,
    cost,
    is_byok: false,
    // Clients of this API parse the last two members as numbers, and fail if one is missing.
    cost_details: {
      ...details,
      upstream_inference_prompt_cost: 0,
      upstream_inference_completions_cost: cost,
    },
  };
};

const wholeOf = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
