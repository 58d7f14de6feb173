import { loadStatements, type Database } from '#store';
import { type Offer, toOffer } from '#catalog';
import type { Service, ServiceConfig } from '#config';
import {
  atPrices,
  nextPastPrices,
  pastPricesFromText,
  pastPricesToText,
  servicesFromText,
  servicesToText,
  withRaises,
  withTimes,
  type RegisteredService,
} from './registered-services.ts';

const SQL = loadStatements(import.meta.url, './sql/listed-prices.sql', ['findListedPrices', 'putListedPrices']);

/** Another gateway that starts at the same time writes the same prices, so a further attempt is rare. */
const ATTEMPTS = 5;

interface RaiseOptions {
  readonly database: Pick<Database, 'query'>;
  /** Epoch milliseconds. */
  readonly now: number;
  /** How long after a price jump calls must accept the new price explicitly. 0: never. */
  readonly noticeMs: number;
}

/**
 * The offers of a configuration, where a model of `[[providers]]` whose list price has jumped has `raised`, as the
 * service of a connected provider would. The operator did not write these prices, and an update can change them.
 * `offers`: those of `services`, in the same order. Rejects with the database's error.
 */
export async function withListedRaises(
  services: readonly ServiceConfig[],
  offers: readonly Offer[],
  options: RaiseOptions,
): Promise<readonly Offer[]> {
  if (options.noticeMs === 0 || !services.some(({ listed }) => listed)) return offers;
  const listed = services.flatMap(({ service, listed: isListed }, index) =>
    isListed ? [{ service, offer: offers[index]! }] : [],
  );
  const raised = new Map<string, Offer>();
  for (const [provider, own] of Map.groupBy(listed, ({ offer }) => offer.provider.id)) {
    const registered = await compare(
      provider,
      own.map(({ service }) => service),
      options,
    );
    own.forEach(({ offer }, index) => raised.set(offer.id, withRaise(offer, registered[index]!)));
  }
  return offers.map((offer) => raised.get(offer.id) ?? offer);
}

async function compare(
  provider: string,
  services: readonly Service[],
  { database, now, noticeMs }: RaiseOptions,
): Promise<readonly RegisteredService[]> {
  for (let attempt = 0; ; attempt += 1) {
    const [row] = await database.query(SQL.findListedPrices, [provider]);
    const text = (row?.['document'] as string | undefined) ?? null;
    const before = text === null ? [] : servicesFromText(text);
    const known = row === undefined ? [] : pastPricesFromText(row['past_prices'] as string);
    const timed = withTimes(services, before, now);
    const document = servicesToText(timed);
    if (document === text) return withRaises(timed, known);
    const past = nextPastPrices(known, before, services, { now, noticeMs });
    const revision = Number(row?.['revision'] ?? 0);
    const written = await database.query(SQL.putListedPrices, [provider, document, pastPricesToText(past), revision]);
    if (written.length > 0 || attempt === ATTEMPTS) return withRaises(timed, past);
  }
}

function withRaise(offer: Offer, { service, raised }: RegisteredService): Offer {
  if (!raised) return offer;
  const { price, variants, priceCap, agent } = toOffer(atPrices(service, raised.was), offer);
  return { ...offer, raised: { until: raised.until, was: { price, variants, priceCap, agent } } };
}
