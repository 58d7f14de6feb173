interface NamedModel {
  readonly imageTokensMax?: number | undefined;
  readonly upstreamModel: string;
}

/** Tokens of an image for a provider that dials in and does not say. Its claims of more are not charged. */
export const IMAGE_TOKENS_OF_OTHERS = 2048;

/** Tokens of an image for a model of the operator whose name is not known. */
export const IMAGE_TOKENS_OF_OWN = 16_384;

/**
 * The most tokens of one image, by the vendors' public rules. The first name that fits counts.
 *
 * - gpt-4o-mini: 2,833, and 5,667 for each tile of 512 × 512, of which an image of 2,048 × 768 has eight. Larger images
 *   are scaled down to that (https://developers.openai.com/api/docs/guides/images-vision).
 * - Other small models of OpenAI: at most 10,000 patches, times up to 2.46.
 */
const RULES: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/gpt-4o-mini/, 2_833 + 8 * 5_667],
  [/(?:^|[-/.:])(?:gpt-|o\d).*(?:mini|nano)/, 26_000],
  [/(?:^|[-/.:])(?:chatgpt-|gpt-|o\d(?:-|$))/, 12_000],
  [/claude|(?:^|[-/.])nova-/, 6_000],
  [/(?:^|[-/.])gem(?:ini|ma)-/, 4_096],
];

/**
 * The most tokens of one image: those that the block declares, else by the name of the model. `isOwn`: the provider is
 * the operator's. It bills what it counts, and a claim of more than was locked is not charged. So a number that is too
 * low sells below the price there, and one that is too high only makes locks larger.
 */
export function imageTokensMax({ imageTokensMax: declared, upstreamModel }: NamedModel, isOwn: boolean): number {
  if (declared !== undefined) return declared;
  if (!isOwn) return IMAGE_TOKENS_OF_OTHERS;
  const name = upstreamModel.toLowerCase();
  return RULES.find(([pattern]) => pattern.test(name))?.[1] ?? IMAGE_TOKENS_OF_OWN;
}
