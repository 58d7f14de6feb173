import { choice, tableOption, textList, trueOrFalse } from '../option.ts';
import type { ImageService } from '../config.ts';
import { IMAGE_PATHS } from '../media-paths.ts';
import { isPrototypeName } from '../names.ts';
import { apiOptions, apiTarget, COMMON_OPTIONS, UPSTREAM_MODEL } from './block-options.ts';
import { defineBlock } from './block.ts';
import { MEDIA_OPTIONS, quoted } from './media-options.ts';
import { imagePricing, imageVariants } from './image-prices.ts';
import { EDITED_IMAGE_PRICE, IMAGE_PRICE, optionalPrice, price } from './price-option.ts';

const FORMATS = ['png', 'jpeg', 'webp'];
const TIERS_MAX = 32;
const VARIANTS_MAX = 128;

const tierFault = (tier: string) =>
  /^[A-Za-z0-9]{1,16}$/.test(tier) && !isPrototypeName(tier) && tier !== EDIT ? null : 'is not written like 1K';

const QUALITIES = ['low', 'medium', 'high', 'standard', 'hd'];

const EDIT = 'edit';

/** The tier of a variant. */
const tierOf = (variant: string) => variant.replace(/^edit\//, '').split('/', 1)[0]!;

const variantFault = (variant: string) => {
  const [tier = '', quality, ...rest] = variant.replace(/^edit\//, '').split('/');
  const known = quality === undefined ? variant.startsWith(`${EDIT}/`) : QUALITIES.includes(quality);
  return rest.length === 0 && tierFault(tier) === null && known
    ? null
    : `is not written like 1K/high, edit/1K or edit/1K/high, with a quality of ${QUALITIES.join(', ')}`;
};

const offer = {
  ...COMMON_OPTIONS,
  ...MEDIA_OPTIONS,
  formats: textList({
    takes: `list of ${FORMATS.map((one) => `\`${one}\``).join(', ')}`,
    meaning: 'File formats that the service makes.',
    fault: (value) => (FORMATS.includes(value) ? null : `is not one of ${FORMATS.join(', ')}`),
    max: FORMATS.length,
  }),
  resolutions: textList({
    takes: 'list of tiers such as `1K`',
    meaning: 'Resolution tiers that the service makes. Default: those that have a price of their own.',
    fault: tierFault,
    max: TIERS_MAX,
  }),
  'pricing.generation': price(IMAGE_PRICE),
  'pricing.resolutions': tableOption({
    takes: 'table of tiers with USD per image',
    optional: 'none',
    meaning: 'Prices of resolution tiers whose price differs from `generation`.',
    entries: { fault: tierFault, value: price(IMAGE_PRICE), max: TIERS_MAX },
  }),
  'pricing.variants': tableOption({
    takes: 'table of tiers with a quality, such as `1K/high`, with USD per image',
    optional: 'none',
    meaning:
      'Prices of a tier in one quality (`1K/high`) that differ from the price of the tier, and prices of edits of a tier (`edit/1K`, `edit/1K/high`). If any quality has a price, a request may only name qualities that have one.',
    entries: { fault: variantFault, value: price(IMAGE_PRICE), max: VARIANTS_MAX },
  }),
  'pricing.edit': {
    ...optionalPrice(IMAGE_PRICE),
    defaultText: 'what an image costs',
    meaning: 'Price per image that an edit makes, if `variants` has no price for its tier.',
  },
  'pricing.input_image': {
    ...optionalPrice(EDITED_IMAGE_PRICE),
    meaning: 'Price per image that is edited, in addition to the price of the images that are made. A mask is free.',
  },
  'params.wire': choice({
    of: ['openai', 'tollgate', 'openrouter'],
    default: 'openai',
    meaning: "API of the service: OpenAI's, that of another gateway (`/image/generate`), or OpenRouter's (`/images`).",
  }),
  'params.edits': trueOrFalse({
    optional: { text: 'false', fallback: false },
    meaning: 'Whether the service also edits images.',
  }),
  'params.body': choice({
    of: ['multipart', 'json'],
    default: 'multipart',
    meaning:
      'Form of an edit request with `wire = "openai"`: `multipart` with files, or `json` with data URLs. The other APIs always take JSON.',
  }),
  'params.model': UPSTREAM_MODEL,
};

const target = apiOptions(IMAGE_PATHS.openai.make);

/** `[[images]]`: an API that makes images. */
export const IMAGE_BLOCK = defineBlock<ImageService, typeof offer, typeof target>({
  primitive: 'image',
  offer,
  target,
  toService(values, complain) {
    const priced = Object.keys(values['pricing.resolutions']);
    const withQuality = Object.keys(values['pricing.variants']);
    const tiers = [...new Set([...priced, ...withQuality.map(tierOf)])];
    const { resolutions } = values;
    for (const tier of tiers)
      if (resolutions.length > 0 && !resolutions.includes(tier))
        complain(
          priced.includes(tier) ? `pricing.resolutions.${tier}` : 'pricing.variants',
          'is not in resolutions',
          `one of ${resolutions.join(', ')}, or add it there`,
        );
    const { 'params.wire': wire, 'params.edits': edits, 'params.body': body } = values;
    const ofEdits = withQuality.find((name) => name.startsWith(`${EDIT}/`));
    for (const [key, given] of [
      ['pricing.edit', values['pricing.edit'] !== null],
      ['pricing.input_image', values['pricing.input_image'] !== null],
      ['pricing.variants', ofEdits !== undefined],
    ] as const)
      if (given && !edits)
        complain(key, 'is a price for edits, but the service does not edit images', 'params.edits = true');
    return {
      rates: { image: values['pricing.generation'] },
      variants: imageVariants({
        generation: values['pricing.generation'],
        resolutions: values['pricing.resolutions'],
        variants: values['pricing.variants'],
        edit: values['pricing.edit'],
        inputImage: values['pricing.input_image'],
      }),
      media: {
        upstreamModel: values['params.model'],
        supportedParams: values.supported_params,
        aspectRatios: values.aspect_ratios,
        formats: values.formats,
        resolutions: resolutions.length > 0 ? resolutions : tiers,
        durations: [],
        ...quoted(values.quotes),
        ...(edits || wire !== 'openai' ? { imageApi: { wire, edits, body } } : {}),
      },
    };
  },
  toTarget: apiTarget,
  toBlock: ({ rates, variants, media }) => ({
    supported_params: media.supportedParams,
    aspect_ratios: media.aspectRatios,
    formats: media.formats,
    resolutions: media.resolutions,
    ...(media.unquoted ? { quotes: false } : {}),
    pricing: imagePricing({ rates, variants }),
    params: {
      model: media.upstreamModel,
      ...media.imageApi,
    },
  }),
});
