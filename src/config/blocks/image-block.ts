import type { MicroUsd, Rates } from '#billing/amounts';
import { choice, tableOption, textList, trueOrFalse } from '../option.ts';
import type { ImageService } from '../service.ts';
import { IMAGE_PATHS } from '../upstream-api.ts';
import { isPrototypeName } from '../names.ts';
import { apiOptions, apiTarget, COMMON_OPTIONS, UPSTREAM_MODEL, defineBlock, MEDIA_OPTIONS, quoted } from './block.ts';
import { EDITED_IMAGE_PRICE, IMAGE_PRICE, optionalPrice, price, perUnit, rates } from './price.ts';

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

/** The prices of an image block, in the structure of the block, as rates. */
interface ImagePrices {
  readonly generation: MicroUsd;
  readonly resolutions: Readonly<Record<string, MicroUsd>>;
  /** Prices of a tier in a quality (`2K/high`), and of edits of a tier (`edit/2K`, `edit/2K/high`). */
  readonly variants: Readonly<Record<string, MicroUsd>>;
  /** null: an edit costs the same as an image. */
  readonly edit: MicroUsd | null;
  /** The price of each image that is edited. null: free. */
  readonly inputImage: MicroUsd | null;
}

const isEdit = (name: string) => name === EDIT || name.startsWith(`${EDIT}/`);

/**
 * The variants of an offer. If any price for edits is given, every combination for edits is a variant. So a price is
 * always that of one variant, and never a sum.
 */
export function imageVariants({ generation, resolutions, variants, edit, inputImage }: ImagePrices) {
  const all = { ...resolutions, ...variants };
  const made: Record<string, Rates> = {};
  for (const [name, image] of Object.entries(all)) if (!isEdit(name)) made[name] = { image };
  const explicit = Object.entries(all).filter(([name]) => isEdit(name));
  if (edit === null && inputImage === null && explicit.length === 0) return made;
  const editRates = (image: MicroUsd) => rates({ image, input_image: inputImage });
  // Without `edit`, an edit costs the same as an image of its tier and quality.
  const derived: [string, MicroUsd][] =
    edit === null
      ? Object.entries(all).flatMap(([name, image]) => (isEdit(name) ? [] : [[`${EDIT}/${name}`, image]]))
      : [];
  for (const [name, image] of [[EDIT, edit ?? generation] as const, ...derived, ...explicit])
    made[name] = editRates(image);
  return made;
}

/** The properties of an image that decide its price. */
interface ImageKind {
  readonly edit: boolean;
  /** null: no tier in particular. */
  readonly tier: string | null;
  /** null: no quality in particular. */
  readonly quality: string | null;
}

const nameOf = ({ edit, tier, quality }: ImageKind): string =>
  [edit ? EDIT : null, tier, quality].filter((part) => part !== null).join('/');

/**
 * The name of the variant that has the price of an image: that of its tier and quality, else of its tier, else of
 * edits. undefined: it costs what any image of the offer costs.
 */
export function imageVariant(variants: Readonly<Record<string, unknown>>, kind: ImageKind): string | undefined {
  const { tier } = kind;
  const edit = kind.edit && Object.hasOwn(variants, EDIT);
  const names = [
    ...(tier === null ? [] : [nameOf({ ...kind, edit }), nameOf({ edit, tier, quality: null })]),
    nameOf({ edit, tier: null, quality: null }),
  ];
  return names.find((name) => Object.hasOwn(variants, name));
}

/** The kinds of images that the names of variants distinguish, by the names that variants for them have. */
export function imageKinds(names: readonly string[]): ReadonlyMap<string, ImageKind> {
  const made = names.map((name) => (name === EDIT ? '' : name.replace(/^edit\//, '')));
  const tiers = made.map((name) => name.split('/', 1)[0]!);
  const edits = names.some(isEdit) ? [false, true] : [false];
  const kinds = [...new Set([...made, ...tiers])].flatMap((name) => {
    const [tier, quality = null] = name.split('/');
    return edits.map((edit): ImageKind => ({ edit, tier: tier || null, quality }));
  });
  return new Map(kinds.map((kind) => [nameOf(kind), kind]));
}

/** The inverse of imageVariants: the `pricing` of a block. */
function imagePricing({ rates: { image = 0n }, variants }: Pick<ImageService, 'rates' | 'variants'>) {
  const priceOf = ({ image: rate = 0n }: Rates) => perUnit(rate);
  const tableOf = (table: string, of: (name: string) => boolean) => {
    const named = Object.entries(variants).flatMap(([name, rate]) =>
      of(name) ? [[name, priceOf(rate)] as const] : [],
    );
    return named.length === 0 ? {} : { [table]: Object.fromEntries(named) };
  };
  const edit = variants[EDIT];
  return {
    generation: perUnit(image),
    ...tableOf('resolutions', (name) => !name.includes('/') && name !== EDIT),
    ...tableOf('variants', (name) => name.includes('/')),
    ...(edit === undefined ? {} : { edit: priceOf(edit) }),
    ...(edit?.input_image === undefined ? {} : { input_image: perUnit(edit.input_image) }),
  };
}
