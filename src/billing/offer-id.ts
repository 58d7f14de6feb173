interface OfferParts {
  readonly primitive: string;
  /** Public key of the provider. */
  readonly provider: string;
  readonly service: string;
}

/** The id of an offer: a service of one provider. Tables and routing use this id. */
export const offerId = ({ primitive, provider, service }: OfferParts): string => `${primitive}/${provider}:${service}`;

const OFFER = /^([a-z]+)\/([^:]*):(.*)$/s;

/** The parts of an offer's id; empty texts if the text is no such id. */
export function partsOfOffer(id: string): OfferParts {
  const [, primitive = '', provider = '', service = ''] = OFFER.exec(id) ?? [];
  return { primitive, provider, service };
}
