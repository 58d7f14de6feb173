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

const QUALITIES = ['low', 'medium', 'high', 'standard', 'hd'];

const variantFault = (variant: string) => {
  const [tier = '', quality = '', ...rest] = variant.split('/');
  return rest.length === 0 && tierFault(tier) === null && QUALITIES.includes(quality)
    ? null
    : `is not written like 1K/high, with a quality of ${QUALITIES.join(', ')}`;
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
  'pricing.variants': tableOption({
    takes: 'table of tiers with a quality, such as `1K/high`, with USD per image',
    optional: 'none',
    meaning:
      'Prices of images of a tier in a quality that cost something else than the tier. Where there are some, a request may name only these qualities.',
    entries: { fault: variantFault, value: price(IMAGE_PRICE), max: TIERS_MAX },
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
    const priced = Object.keys(values['pricing.resolutions']);
    const withQuality = Object.keys(values['pricing.variants']);
    const tiers = [...new Set([...priced, ...withQuality.map((name) => name.split('/', 1)[0]!)])];
    const { resolutions } = values;
    for (const tier of tiers)
      if (resolutions.length > 0 && !resolutions.includes(tier))
        complain(
          priced.includes(tier) ? `pricing.resolutions.${tier}` : 'pricing.variants',
          'is not in resolutions',
          `one of ${resolutions.join(', ')}, or add it there`,
        );
    return {
      rates: { image: values['pricing.generation'] },
      variants: ratesByName({ ...values['pricing.resolutions'], ...values['pricing.variants'] }, 'image'),
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
      ...tableOf('resolutions', variants, (name) => !name.includes('/')),
      ...tableOf('variants', variants, (name) => name.includes('/')),
    },
    params: { model: media.upstreamModel },
  }),
});

/** The prices of those variants, under the name that the block has for them. */
function tableOf(table: string, variants: ImageService['variants'], of: (name: string) => boolean) {
  const named = Object.fromEntries(Object.entries(variants).filter(([name]) => of(name)));
  return Object.keys(named).length === 0 ? {} : { [table]: perUnitByName(named, 'image') };
}
