import type { ImageFacts } from '../catalogue.ts';

/** The form fields, as typed. An empty field leaves the choice to the model. */
export interface ImageAsk {
  readonly prompt: string;
  readonly tier: string;
  readonly ratio: string;
  readonly quality: string;
  readonly n: number;
  readonly seed: string;
  readonly negative: string;
  readonly format: string;
  /** Images to edit, as data URLs. */
  readonly images: readonly string[];
}

export const NO_ASK: ImageAsk = {
  prompt: '',
  tier: '',
  ratio: '',
  quality: '',
  n: 1,
  seed: '',
  negative: '',
  format: '',
  images: [],
};

export const RATIOS = ['1:1', '4:3', '3:4', '16:9', '9:16'] as const;

type ImageBody = Readonly<Record<string, unknown>> & { readonly model: string };

/** The part of the request that decides the price. */
export const pricedBody = (model: string, ask: ImageAsk): ImageBody => ({
  model,
  n: ask.n,
  ...(ask.tier === '' ? {} : { resolution: ask.tier }),
  ...(ask.ratio === '' ? {} : { aspect_ratio: ask.ratio }),
  ...(ask.quality === '' ? {} : { quality: ask.quality }),
});

/** The whole request. */
export const imageBody = (model: string, ask: ImageAsk): ImageBody => ({
  ...pricedBody(model, ask),
  prompt: ask.prompt.trim(),
  ...(ask.seed.trim() === '' ? {} : { seed: Number(ask.seed) }),
  ...(ask.negative.trim() === '' ? {} : { negative_prompt: ask.negative.trim() }),
  ...(ask.format === '' ? {} : { output_format: ask.format }),
  ...(ask.images.length === 0 ? {} : { images: ask.images.map((url) => ({ b64: url })) }),
});

/** Generations and edits have different paths. */
export const imagePath = ({ images }: ImageAsk) =>
  `/api/v1/image/${images.length === 0 ? 'generate' : 'edit'}` as const;

const SEED_MAX = 2_147_483_647;

export function faultOfSeed(text: string): string | null {
  if (text.trim() === '') return null;
  const seed = Number(text);
  return Number.isInteger(seed) && seed >= 0 && seed <= SEED_MAX ? null : `Write a whole number, 0 to ${SEED_MAX}.`;
}

export const takes = (facts: ImageFacts, name: string): boolean => facts.takes.has(name);
