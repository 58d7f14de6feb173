import { cost, type MicroUsd, type Price } from '#billing/amounts';
import { imageKindName, imageVariant } from '#config';
import type { Offer } from '#catalog';
import { edgeOfTier, type ImageAsk, sizeIn, tierOfSize } from './request/image-ask.ts';
import { unprocessable } from './media-error.ts';

/**
 * The resolution tier of a request at an offer; null if the offer has no tiers. A request without a tier and a size
 * gets 1K, or the offer's first tier. Throws GatewayError `unprocessable` for a tier that the offer does not make.
 */
export function tierAt({ resolution, size }: ImageAsk, offer: Offer): string | null {
  const tiers = offer.media!.resolutions;
  if (tiers.length === 0) {
    if (resolution !== null)
      throw unprocessable('resolution', `${offer.service} of ${offer.provider.name} has no resolution tiers`);
    return null;
  }
  const tier = resolution ?? (size === null ? null : tierOfSize(size));
  if (tier === null) return tiers.includes('1K') ? '1K' : tiers[0]!;
  if (tiers.includes(tier)) return tier;
  const request = resolution === null ? `size ${size!.width}x${size!.height} (${tier})` : `resolution ${tier}`;
  throw unprocessable(
    resolution === null ? 'size' : 'resolution',
    `${request} is not made by ${offer.provider.name}; it makes ${tiers.join(', ')}`,
  );
}

/**
 * The price of an image of this request at an offer: the price of its tier and quality, else that of its tier, else
 * the offer's. It is known before the call. Throws GatewayError `unprocessable`.
 */
export function imagePrice(ask: ImageAsk, offer: Offer): Price {
  const price = priceAsListed(ask, offer);
  refuseUnpricedQuality(ask, offer);
  refuseUnpricedPictures(ask, offer, price);
  return price;
}

/** The same, also for a quality that the offer does not sell. */
export function priceAsListed(ask: ImageAsk, offer: Offer): Price {
  const { variants, price } = offer;
  const name = imageVariant(variants, kindAt(ask, offer));
  return name === undefined ? price : variants[name]!;
}

const kindAt = (ask: ImageAsk, offer: Offer) => ({
  edit: ask.edit !== null,
  tier: tierAt(ask, offer),
  quality: ask.quality,
});

/** The name of what is ordered, such as `edit/1K/high`; undefined for an image without edit and tier. */
export function orderedVariant(ask: ImageAsk, offer: Offer): string | undefined {
  const kind = kindAt(ask, offer);
  return imageKindName(kind.tier === null ? { ...kind, quality: null } : kind) || undefined;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

const pixelsOf = ({ width, height }: Size): number => width * height;

/**
 * An image with less than this part of the ordered pixels is not what was ordered. Models often make a size of their
 * own that is near the ordered one: 3840 × 2160 has half of the pixels of 4096 × 4096. The next tier has a quarter.
 */
const SMALL = 1 / 3;

/**
 * The size that was ordered; null if the request leaves it to the model. An edit has the size of its input if the
 * request names none.
 */
function orderedSize(ask: ImageAsk, offer: Offer): Size | null {
  if (ask.size !== null) return ask.size;
  if (ask.edit !== null && ask.resolution === null) return null;
  const tier = tierAt(ask, offer);
  const edge = tier === null ? null : edgeOfTier(tier);
  return edge === null ? null : sizeIn(edge, ask.aspectRatio);
}

/** A reply with an image that is much smaller than ordered. */
export interface SmallWorth {
  /** Of the images and words, in micro-USD. */
  readonly worth: MicroUsd;
  /** Pixels of an image that was ordered, and of the smallest one that came. */
  readonly ordered: number;
  readonly smallest: number;
}

/**
 * The worth of a reply if one of its images is much smaller than ordered; else null. A small image is worth the price
 * of the offer's lowest tier that it fits into, and of an even smaller one its pixels' part. `words`: the tokens of
 * words that are charged beside the images.
 */
export function worthOf(ask: ImageAsk, offer: Offer, images: readonly Size[], words: bigint): SmallWorth | null {
  const ordered = orderedSize(ask, offer);
  const isSmall = (image: Size) => ordered !== null && pixelsOf(image) < pixelsOf(ordered) * SMALL;
  if (ordered === null || !images.some(isSmall)) return null;
  const { image: full = 0n, input_image: input = 0n, prompt = 0n } = priceAsListed(ask, offer).rates;
  const rates = images.map((one) =>
    isSmall(one) ? rateOfSmall(ask, offer, one, { pixels: pixelsOf(ordered), full }) : full,
  );
  const all = rates.reduce((sum, rate) => sum + rate, input * BigInt(ask.edit?.charged ?? 0) + prompt * words);
  return {
    worth: cost({ image: all }, { image: 1n }),
    ordered: pixelsOf(ordered),
    smallest: Math.min(...images.map(pixelsOf)),
  };
}

function rateOfSmall(
  ask: ImageAsk,
  { variants, price, media }: Offer,
  image: Size,
  ordered: { readonly pixels: number; readonly full: MicroUsd },
): MicroUsd {
  const pixels = pixelsOf(image);
  const [lowest] = media!.resolutions
    .map((tier) => ({ tier, pixels: (edgeOfTier(tier) ?? 0) ** 2 }))
    .filter((one) => one.pixels >= pixels && one.pixels <= ordered.pixels)
    .toSorted((a, b) => a.pixels - b.pixels);
  const name = lowest && imageVariant(variants, { edit: ask.edit !== null, tier: lowest.tier, quality: ask.quality });
  const listed = lowest === undefined ? ordered.full : ((name ? variants[name]! : price).rates.image ?? 0n);
  const rate = listed < ordered.full ? listed : ordered.full;
  const whole = lowest?.pixels ?? ordered.pixels;
  return pixels >= whole * SMALL ? rate : (rate * BigInt(pixels)) / BigInt(whole);
}

const EDIT = 'edit/';

/** The prefix of the price variants for a request. Edits may have their own prices. */
const prefixOf = ({ edit }: ImageAsk, { variants }: Offer): string =>
  edit !== null && Object.hasOwn(variants, EDIT.slice(0, -1)) ? EDIT : '';

export function pricedQualities(ask: ImageAsk, offer: Offer): readonly string[] {
  const prefix = prefixOf(ask, offer);
  const names = Object.keys(offer.variants).filter((name) => name.startsWith(EDIT) === (prefix === EDIT));
  return [...new Set(names.flatMap((name) => name.slice(prefix.length).split('/', 2)[1] ?? []))];
}

function refuseUnpricedQuality(ask: ImageAsk, offer: Offer): void {
  const { quality } = ask;
  const known = pricedQualities(ask, offer);
  if (quality === null || known.length === 0 || known.includes(quality)) return;
  throw unprocessable(
    'quality',
    `quality ${quality} has no price at ${offer.provider.name}; it has ${known.join(', ')}, and auto`,
  );
}

/** The images that an edit may have at an offer without a price for them: its own price includes one. */
const UNPRICED_PICTURES_MAX = 1;

function refuseUnpricedPictures({ edit }: ImageAsk, { provider }: Offer, { rates }: Price): void {
  if (edit === null || edit.count <= UNPRICED_PICTURES_MAX || rates.input_image !== undefined) return;
  throw unprocessable(
    'images',
    `${provider.name} has no price for images that are edited, so an edit has one there, not ${edit.count}. The operator can set pricing.input_image, or 0 if its provider does not bill them`,
  );
}
