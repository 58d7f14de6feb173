import type { MicroUsd, Rates } from '#billing/amounts';
import type { ImageService } from '../config.ts';
import { perUnit, rates } from './rates.ts';

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

const EDIT = 'edit';
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
export function imagePricing({ rates: { image = 0n }, variants }: Pick<ImageService, 'rates' | 'variants'>) {
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
