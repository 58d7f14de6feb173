import { ratesFromJson, ratesToJson, type Rates } from '#billing';
import type { Service } from '../config.ts';
import type { RegisteredService } from './registry.ts';

type RatesJson = Record<string, string>;
type ServiceJson = Omit<Service, 'rates' | 'variants' | 'priceCap'> & {
  /** Of tools; absent in what was stored before there were caps. */
  readonly priceCap?: string | null;
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
      ...(service.primitive === 'tool' ? { priceCap: service.priceCap?.toString() ?? null } : {}),
      createdAt,
    })),
  );
}

/** The inverse of servicesToText. */
export function servicesFromText(text: string): readonly RegisteredService[] {
  return (JSON.parse(text) as readonly ServiceJson[]).map(({ createdAt, rates, variants, priceCap, ...rest }) => ({
    service: {
      ...rest,
      rates: ratesFromJson(rates),
      variants: mapValues(variants, (json): Rates => ratesFromJson(json)),
      ...(rest.primitive === 'tool' ? { priceCap: priceCap ? BigInt(priceCap) : null } : {}),
    } as Service,
    createdAt,
  }));
}

/** The services with the times at which they were first registered: those of `before`, by primitive and name, else `now`. */
export function withTimes(services: readonly Service[], before: readonly RegisteredService[], now: number): readonly RegisteredService[] {
  const times = new Map(before.map(({ service, createdAt }) => [keyOf(service), createdAt]));
  return services.map((service) => ({ service, createdAt: times.get(keyOf(service)) ?? now }));
}

const keyOf = ({ primitive, name }: Service): string => `${primitive}/${name}`;

function mapValues<A, B>(record: Readonly<Record<string, A>>, map: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
