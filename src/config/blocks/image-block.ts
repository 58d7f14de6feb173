import { tableOption, textList } from '../option.ts';
import type { ImageService } from '../config.ts';
import { isPrototypeName } from '../names.ts';
import { apiOptions, apiTarget, COMMON_OPTIONS, UPSTREAM_MODEL } from './block-options.ts';
import { defineBlock } from './block.ts';
import { MEDIA_OPTIONS } from './media-options.ts';
import { IMAGE_PRICE, price } from './price-option.ts';
import { perUnit, perUnitByName, ratesByName } from './rates.ts';

const FORMATS = ['png', 'jpeg', 'webp'];
const TIERS_MAX = 32;

const tierFault = (tier: string) =>
  /^[A-Za-z0-9]{1,16}$/.test(tier) && !isPrototypeName(tier) ? null : 'is not written like 1K';

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
    meaning: 'Resolution tiers that the service makes. Where it is left out, those that have a price of their own.',
    fault: tierFault,
    max: TIERS_MAX,
  }),
  'pricing.generation': price(IMAGE_PRICE),
  'pricing.resolutions': tableOption({
    takes: 'table of tiers with USD per image',
    optional: 'none',
    meaning: 'Prices of resolution tiers that cost something else than `generation`.',
    entries: { fault: tierFault, value: price(IMAGE_PRICE), max: TIERS_MAX },
  }),
  'params.model': UPSTREAM_MODEL,
};

const target = apiOptions('/images/generations');

/** `[[images]]`: an API that makes images. */
export const IMAGE_BLOCK = defineBlock<ImageService, typeof offer, typeof target>({
  primitive: 'image',
  offer,
  target,
  toService(values, complain) {
    const tiers = Object.keys(values['pricing.resolutions']);
    const { resolutions } = values;
    for (const tier of tiers)
      if (resolutions.length > 0 && !resolutions.includes(tier))
        complain(
          `pricing.resolutions.${tier}`,
          'is not in resolutions',
          `one of ${resolutions.join(', ')}, or add it there`,
        );
    return {
      rates: { image: values['pricing.generation'] },
      variants: ratesByName(values['pricing.resolutions'], 'image'),
      media: {
        upstreamModel: values['params.model'],
        supportedParams: values.supported_params,
        aspectRatios: values.aspect_ratios,
        formats: values.formats,
        resolutions: resolutions.length > 0 ? resolutions : tiers,
        durations: [],
      },
    };
  },
  toTarget: apiTarget,
  toBlock: ({ rates, variants, media }) => ({
    supported_params: media.supportedParams,
    aspect_ratios: media.aspectRatios,
    formats: media.formats,
    resolutions: media.resolutions,
    pricing: {
      generation: perUnit(rates.image ?? 0n),
      ...(Object.keys(variants).length === 0 ? {} : { resolutions: perUnitByName(variants, 'image') }),
    },
    params: { model: media.upstreamModel },
  }),
});
