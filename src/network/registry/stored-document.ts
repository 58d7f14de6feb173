import type { Row } from '#store';
import { ratesFromJson, ratesToJson, type Rates } from '#billing';
import type { AgentFacts, Service } from '#config';
import { pastPricesFromText, withRaises } from './past-prices.ts';
import type { RegisteredService } from './registry.ts';

type RatesJson = Record<string, string>;
type ServiceJson = Omit<Service, 'rates' | 'variants' | 'priceCap' | 'agent'> & {
  /** For tools and agents. Absent in rows from before caps existed. */
  readonly priceCap?: string | null;
  /** For agents. Older rows lack some fields. */
  readonly agent?: Partial<Omit<AgentFacts, 'nestedMax'>> &
    Pick<AgentFacts, 'cardPath'> & { readonly nestedMax?: string };
  readonly rates: RatesJson;
  readonly variants: Record<string, RatesJson>;
  readonly createdAt: number;
};

/** Services as JSON text, rates as decimal strings. The same services give the same text. */
export function servicesToText(services: readonly RegisteredService[]): string {
  return JSON.stringify(
    services.map(({ service, createdAt }) => ({
      ...service,
      rates: ratesToJson(service.rates),
      variants: mapValues(service.variants, ratesToJson),
      ...(capped(service) ? { priceCap: service.priceCap?.toString() ?? null } : {}),
      ...(service.primitive === 'agent'
        ? { agent: { ...service.agent, nestedMax: service.agent.nestedMax.toString() } }
        : {}),
      createdAt,
    })),
  );
}

/** The inverse of servicesToText. */
export function servicesFromText(text: string): readonly RegisteredService[] {
  return (JSON.parse(text) as readonly ServiceJson[]).map(
    ({ createdAt, rates, variants, priceCap, agent, ...rest }) => ({
      service: {
        ...rest,
        rates: ratesFromJson(rates),
        variants: mapValues(variants, (json): Rates => ratesFromJson(json)),
        ...(capped(rest) ? { priceCap: priceCap ? BigInt(priceCap) : null } : {}),
        ...(agent
          ? { agent: { rpcPath: null, chargedPer: 'message', ...agent, nestedMax: BigInt(agent.nestedMax ?? '0') } }
          : {}),
      } as Service,
      createdAt,
    }),
  );
}

/** The services of a row. Services whose price jumped have their previous prices. */
export function registeredOf(row: Row): readonly RegisteredService[] {
  return withRaises(servicesFromText(row['document'] as string), pastPricesFromText(row['past_prices'] as string));
}

/**
 * The services with the times of their first registration. A service of `before` with the same primitive and name keeps
 * its time. A new one gets `now`.
 */
export function withTimes(
  services: readonly Service[],
  before: readonly RegisteredService[],
  now: number,
): readonly RegisteredService[] {
  const times = new Map(before.map(({ service, createdAt }) => [keyOf(service), createdAt]));
  return services.map((service) => ({ service, createdAt: times.get(keyOf(service)) ?? now }));
}

const capped = <S extends { readonly primitive: Service['primitive'] }>(
  service: S,
): service is S & { readonly primitive: 'tool' | 'agent' } =>
  service.primitive === 'tool' || service.primitive === 'agent';

const keyOf = ({ primitive, name }: Service): string => `${primitive}/${name}`;

function mapValues<A, B>(record: Readonly<Record<string, A>>, map: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
