interface OfferParts {
  readonly primitive: string;
  /** Public key of the provider. */
  readonly provider: string;
  readonly service: string;
}

/** The id of an offer: a service of one provider. Tables and routing know it by that. */
export const offerId = ({ primitive, provider, service }: OfferParts): string => `${primitive}/${provider}:${service}`;

const OFFER = /^([a-z]+)\/([^:]*):(.*)$/s;

/** The parts of the id of an offer; empty ones for another text. */
export function partsOfOffer(id: string): OfferParts {
  const [, primitive = '', provider = '', service = ''] = OFFER.exec(id) ?? [];
  return { primitive, provider, service };
}
