import { GatewayError } from '#wire';
import type { Price } from '#billing/amounts';
import { imageVariant } from '#config';
import type { Offer } from '#gateway';
import { type ImageAsk, tierOfSize } from './request/image-ask.ts';

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
  const wanted = resolution ?? (size === null ? null : tierOfSize(size));
  if (wanted === null) return tiers.includes('1K') ? '1K' : tiers[0]!;
  if (tiers.includes(wanted)) return wanted;
  const asked = resolution === null ? `size ${size!.width}x${size!.height} (${wanted})` : `resolution ${wanted}`;
  throw unprocessable(
    resolution === null ? 'size' : 'resolution',
    `${asked} is not made by ${offer.provider.name}; it makes ${tiers.join(', ')}`,
  );
}

/**
 * The price of an image of this request at an offer: the price of its tier and quality, else that of its tier, else
 * the offer's. It is known before the call. Throws GatewayError `unprocessable`.
 */
export function imagePrice(ask: ImageAsk, offer: Offer): Price {
  const price = priceAsListed(ask, offer);
  refuseUnpricedQuality(ask, offer);
  return price;
}

/** The same, also for a quality that the offer does not sell. */
export function priceAsListed(ask: ImageAsk, offer: Offer): Price {
  const { variants, price } = offer;
  const kind = { edit: ask.edit !== null, tier: tierAt(ask, offer), quality: ask.quality };
  const name = imageVariant(variants, kind);
  return name === undefined ? price : variants[name]!;
}

const EDIT = 'edit/';

/** The prefix of the price variants for a request. Edits may have their own prices. */
const prefixOf = ({ edit }: ImageAsk, { variants }: Offer): string =>
  edit !== null && Object.hasOwn(variants, EDIT.slice(0, -1)) ? EDIT : '';

/** The qualities that have their own price at an offer. */
export function pricedQualities(ask: ImageAsk, offer: Offer): readonly string[] {
  const of = prefixOf(ask, offer);
  const names = Object.keys(offer.variants).filter((name) => name.startsWith(EDIT) === (of === EDIT));
  return [...new Set(names.flatMap((name) => name.slice(of.length).split('/', 2)[1] ?? []))];
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

export const unprocessable = (param: string, message: string) => new GatewayError('unprocessable', message, { param });
