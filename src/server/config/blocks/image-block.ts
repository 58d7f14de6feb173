import type { MicroUsd, Rates } from '#billing/amounts';
import { choice, tableOption, textList, trueOrFalse } from '../option.ts';
import { IMAGE_PATHS, type ImageWireName } from '../upstream-api.ts';
import { isPrototypeName } from '../names.ts';
import {
  COMMON_OPTIONS,
  defineBlock,
  firstEventTimeout,
  headTimeout,
  MEDIA_OPTIONS,
  UPSTREAM_MODEL,
  withTimeouts,
} from './block.ts';
import { declaredOptions, stopsOption } from './declared.ts';
import { apiOrSdkOptions, toApiOrSdkTarget } from './sdk-options.ts';
import { alwaysWritten, field } from './field.ts';
import { tableCost } from './price-tiers.ts';
import {
  EDITED_IMAGE_PRICE,
  IMAGE_PRICE,
  optionalPrice,
  optionalRate,
  perUnit,
  price,
  PROMPT_PRICE,
  rate,
  rates,
} from './price.ts';

const FORMATS = ['png', 'jpeg', 'webp'];
const TIERS_MAX = 32;
const VARIANTS_MAX = 128;

const tierFault = (tier: string) =>
  /^[A-Za-z0-9]{1,16}$/.test(tier) && !isPrototypeName(tier) && tier !== EDIT ? null : 'is not written like 1K';

const QUALITIES = ['low', 'medium', 'high', 'standard', 'hd'];

const EDIT = 'edit';

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
  ...declaredOptions('media'),
  stops: stopsOption('media'),
  formats: alwaysWritten(
    'media.formats',
    textList({
      takes: `list of ${FORMATS.map((one) => `\`${one}\``).join(', ')}`,
      meaning: 'File formats that the service makes.',
      fault: (value) => (FORMATS.includes(value) ? null : `is not one of ${FORMATS.join(', ')}`),
      max: FORMATS.length,
    }),
  ),
  resolutions: textList({
    takes: 'list of tiers such as `1K`',
    meaning: 'Resolution tiers that the service makes. Default: those that have a price of their own.',
    fault: tierFault,
    max: TIERS_MAX,
  }),
  'pricing.generation': rate(IMAGE_PRICE),
  'pricing.prompt': {
    ...optionalRate(PROMPT_PRICE),
    defaultText: 'not charged, and a request has at most 2,000 bytes of text',
    meaning:
      'Price per 1M tokens of the prompt and the other texts of a request, in addition to the price of its images. For a provider that bills them. With 0 they are free and have no bound.',
  },
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
    ...optionalPrice(EDITED_IMAGE_PRICE, 'not charged, and an edit has one image'),
    meaning:
      'Price per image that is edited, in addition to the price of the images that are made. A mask is one more. With 0 they are free, and an edit may have several.',
  },
  'params.wire': choice({
    values: ['openai', 'tollgate', 'openrouter'],
    default: 'openai',
    meaning: "API of the service: OpenAI's, that of another gateway (`/image/generate`), or OpenRouter's (`/images`).",
  }),
  'params.edits': trueOrFalse({
    optional: { text: 'false', fallback: false },
    meaning: 'Whether the service also edits images.',
  }),
  'params.body': choice({
    values: ['multipart', 'json'],
    default: 'multipart',
    meaning:
      'Form of an edit request with `wire = "openai"`: `multipart` with files, or `json` with data URLs. The other APIs always take JSON.',
  }),
  'params.model': field('media.upstreamModel', UPSTREAM_MODEL),
};

/** The rates of each variant. Without costs for edits, an edit costs the same as an image. */
function costsOfVariants(prices: ImagePrices): Readonly<Record<string, Rates>> {
  const variants = imageVariants(prices);
  if (Object.hasOwn(variants, EDIT)) return variants;
  const edits = Object.entries(variants).map(([name, each]) => [`${EDIT}/${name}`, each] as const);
  return { ...variants, ...Object.fromEntries(edits) };
}

const target = {
  cost: tableCost(
    {
      prices: { generation: IMAGE_PRICE, prompt: PROMPT_PRICE, edit: IMAGE_PRICE, input_image: EDITED_IMAGE_PRICE },
      tables: {
        resolutions: { bounds: IMAGE_PRICE, takes: 'tiers', fault: tierFault, max: TIERS_MAX },
        variants: { bounds: IMAGE_PRICE, takes: 'tiers with a quality', fault: variantFault, max: VARIANTS_MAX },
      },
      meaning:
        'It may name tiers and qualities that have no price of their own. Words count only with `pricing.prompt`. ',
      example: '{ generation = 0.03 }',
    },
    ({ single: { generation = 0n, prompt = null, edit = null, input_image: inputImage = null }, byName }) => {
      const { resolutions = {}, variants = {} } = byName;
      const prices = { generation, resolutions, variants, edit, inputImage, prompt };
      return { rates: rates({ image: generation, prompt }), variants: costsOfVariants(prices) };
    },
  ),
  ...apiOrSdkOptions(IMAGE_PATHS.openai.make),
  'params.head_timeout_ms': headTimeout('image model'),
  'params.first_event_timeout_ms': firstEventTimeout('image model'),
};

interface ImageApi {
  readonly wire: ImageWireName;
  readonly edits: boolean;
  /** The format of the request for an edit. */
  readonly body: 'multipart' | 'json';
}

interface CombinedFields {
  readonly variants: Readonly<Record<string, Rates>>;
  readonly media: {
    readonly resolutions: readonly string[];
    readonly durations: readonly string[];
    /** Absent: OpenAI's wire, without edits. */
    readonly imageApi?: ImageApi;
  };
}

type VariantPrices = Readonly<Record<string, MicroUsd>>;

/** The tiers that have a price of their own. */
const pricedTiers = (resolutions: VariantPrices, variants: VariantPrices): readonly string[] => [
  ...new Set([...Object.keys(resolutions), ...Object.keys(variants).map(tierOf)]),
];

export const IMAGE_BLOCK = defineBlock({
  primitive: 'image',
  offer,
  target,
  check(values, complain) {
    const { resolutions, 'pricing.resolutions': ofTiers, 'pricing.variants': variants } = values;
    for (const tier of pricedTiers(ofTiers, variants))
      if (resolutions.length > 0 && !resolutions.includes(tier))
        complain(
          Object.hasOwn(ofTiers, tier) ? `pricing.resolutions.${tier}` : 'pricing.variants',
          'is not in resolutions',
          `one of ${resolutions.join(', ')}, or add it there`,
        );
    for (const [key, isPresent] of [
      ['pricing.edit', values['pricing.edit'] !== null],
      ['pricing.input_image', values['pricing.input_image'] !== null],
      ['pricing.variants', Object.keys(variants).some(isEdit)],
    ] as const)
      if (isPresent && !values['params.edits'])
        complain(key, 'is a price for edits, but the service does not edit images', 'params.edits = true');
  },
  combine(values): CombinedFields {
    const { resolutions, 'pricing.resolutions': ofTiers, 'pricing.variants': variants } = values;
    const { 'params.wire': wire, 'params.edits': edits, 'params.body': body } = values;
    return {
      variants: imageVariants({
        generation: values['pricing.generation'],
        resolutions: ofTiers,
        variants,
        edit: values['pricing.edit'],
        inputImage: values['pricing.input_image'],
        prompt: values['pricing.prompt'],
      }),
      media: {
        resolutions: resolutions.length > 0 ? resolutions : pricedTiers(ofTiers, variants),
        durations: [],
        ...(edits || wire !== 'openai' ? { imageApi: { wire, edits, body } } : {}),
      },
    };
  },
  separate: ({ variants, media: { resolutions, imageApi } }) => ({
    resolutions,
    'pricing.resolutions': pricesOf(variants, (name) => !name.includes('/') && name !== EDIT),
    'pricing.variants': pricesOf(variants, (name) => name.includes('/')),
    'pricing.edit': perImage(variants[EDIT]?.image),
    'pricing.input_image': perImage(variants[EDIT]?.input_image),
    'params.wire': imageApi?.wire,
    'params.edits': imageApi?.edits,
    'params.body': imageApi?.body,
  }),
  writtenLast: ['quotes', 'params.wire', 'params.edits', 'params.body'],
  toTarget: (
    { 'params.head_timeout_ms': headMs, 'params.first_event_timeout_ms': firstEventMs, cost, ...values },
    ...rest
  ) => withTimeouts({ ...toApiOrSdkTarget(values, ...rest), ...(cost === null ? {} : { cost }) }, headMs, firstEventMs),
});

const perImage = (price: MicroUsd | undefined) => (price === undefined ? undefined : perUnit(price));

/** The prices of some variants by their names. undefined without such a variant. */
function pricesOf(variants: CombinedFields['variants'], isOne: (name: string) => boolean) {
  const entries = Object.entries(variants).filter(([name]) => isOne(name));
  return entries.length === 0
    ? undefined
    : Object.fromEntries(entries.map(([name, { image = 0n }]) => [name, perUnit(image)]));
}

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
  /** The price of the words of a request. null: they have none. */
  readonly prompt: MicroUsd | null;
}

const isEdit = (name: string) => name === EDIT || name.startsWith(`${EDIT}/`);

/**
 * The variants of an offer. If any price for edits is given, every combination for edits is a variant. So a price is
 * always that of one variant, and never a sum.
 */
export function imageVariants({ generation, resolutions, variants, edit, inputImage, prompt }: ImagePrices) {
  const all = { ...resolutions, ...variants };
  const result: Record<string, Rates> = {};
  for (const [name, image] of Object.entries(all)) if (!isEdit(name)) result[name] = rates({ image, prompt });
  const explicit = Object.entries(all).filter(([name]) => isEdit(name));
  if (edit === null && inputImage === null && explicit.length === 0) return result;
  const editRates = (image: MicroUsd) => rates({ image, input_image: inputImage, prompt });
  // Without `edit`, an edit costs the same as an image of its tier and quality.
  const derived: [string, MicroUsd][] =
    edit === null
      ? Object.entries(all).flatMap(([name, image]) => (isEdit(name) ? [] : [[`${EDIT}/${name}`, image]]))
      : [];
  for (const [name, image] of [[EDIT, edit ?? generation] as const, ...derived, ...explicit])
    result[name] = editRates(image);
  return result;
}

/** The properties of an image that decide its price. */
interface ImageKind {
  readonly edit: boolean;
  /** null: no tier in particular. */
  readonly tier: string | null;
  /** null: no quality in particular. */
  readonly quality: string | null;
}

/** The name of the variant for exactly these properties; empty for none. */
export const imageKindName = ({ edit, tier, quality }: ImageKind): string =>
  [edit ? EDIT : null, tier, quality].filter((part) => part !== null).join('/');

/**
 * The name of the variant that has the price of an image: that of its tier and quality, else of its tier, else of
 * edits. undefined: it costs what any image of the offer costs.
 */
export function imageVariant(variants: Readonly<Record<string, unknown>>, kind: ImageKind): string | undefined {
  const { tier } = kind;
  const edit = kind.edit && Object.hasOwn(variants, EDIT);
  const names = [
    ...(tier === null ? [] : [imageKindName({ ...kind, edit }), imageKindName({ edit, tier, quality: null })]),
    imageKindName({ edit, tier: null, quality: null }),
  ];
  return names.find((name) => Object.hasOwn(variants, name));
}

/** The kinds of images that the names of variants distinguish, by the names that variants for them have. */
export function imageKinds(names: readonly string[]): ReadonlyMap<string, ImageKind> {
  const kindNames = names.map((name) => (name === EDIT ? '' : name.replace(/^edit\//, '')));
  const tiers = kindNames.map((name) => name.split('/', 1)[0]!);
  const edits = names.some(isEdit) ? [false, true] : [false];
  const kinds = [...new Set([...kindNames, ...tiers])].flatMap((name) => {
    const [tier, quality = null] = name.split('/');
    return edits.map((edit): ImageKind => ({ edit, tier: tier || null, quality }));
  });
  return new Map(kinds.map((kind) => [imageKindName(kind), kind]));
}
