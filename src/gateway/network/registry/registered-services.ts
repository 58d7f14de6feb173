import type { Row } from '#store';
import { type MicroUsd, type Rates, ratesFromJson, ratesToJson } from '#billing/amounts';
import { JUMP, leastRates, ratesAbove } from '#billing';
import { type AgentFacts, type Service, imageKinds, imageVariant } from '#config';
import { RegistrationError } from './document.ts';

/** A service that a provider registered. */
export interface RegisteredService {
  readonly service: Service;
  /** When the provider first registered a service of this primitive and name. */
  readonly createdAt: number;
  /**
   * Set if its price jumped. `was`: the prices before. `until`: epoch milliseconds until which calls must accept the
   * new price explicitly.
   */
  readonly raised?: { readonly until: number; readonly was: ServicePrices };
}

/** Everything that determines the cost of a call of a service. */
interface ServicePrices {
  readonly rates: Rates;
  /** Rates of parts with their own price. Other parts cost `rates`. */
  readonly variants: Readonly<Record<string, Rates>>;
  readonly priceCap: MicroUsd | null;
  readonly nestedMax: MicroUsd;
  /** One price covers all messages of a task. */
  readonly byTask: boolean;
}

/** The lowest recent prices of a service. */
interface PastPrice {
  /** `<primitive>/<name>`. */
  readonly key: string;
  /** Epoch milliseconds at which the notice of its last raise ends. A withdrawal of the service counts as a raise. */
  readonly until: number;
  readonly prices: ServicePrices;
}

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

/**
 * How long a withdrawn service is remembered after its notice, so that it cannot return at a higher price unnoticed.
 */
const GONE_MS = 24 * 3_600_000;
/** Remembered prices of withdrawn services for each provider. */
const GONE_PRICES_MAX = 20_000;

/**
 * The prices to remember when a provider's services change from `before` to `after`. A notice starts at the last raise.
 * New prices are compared with the lowest price during the notice, so a raise in many steps counts as one. Throws
 * RegistrationError if the withdrawn services have more prices than can be remembered.
 */
export function nextPastPrices(
  past: readonly PastPrice[],
  before: readonly RegisteredService[],
  after: readonly Service[],
  { now, noticeMs }: { readonly now: number; readonly noticeMs: number },
): readonly PastPrice[] {
  if (noticeMs === 0) return [];
  const until = now + noticeMs;
  const newPrices = new Map(after.map((service) => [keyOf(service), pricesOfService(service)]));
  const known = new Map(past.map((one) => [one.key, one]));
  const next: PastPrice[] = [];
  for (const { service } of before) {
    const key = keyOf(service);
    const price = known.get(key);
    known.delete(key);
    const current = pricesOfService(service);
    const running = price !== undefined && price.until > now;
    const least = running ? leastOf(key, price.prices, current) : current;
    const to = newPrices.get(key);
    if (to === undefined || isAbove(key, to, current)) next.push({ key, until, prices: least });
    else if (running) next.push({ key, until: price.until, prices: least });
  }
  // The remaining entries are services that were withdrawn earlier.
  for (const one of known.values()) {
    const to = newPrices.get(one.key);
    if (to !== undefined) next.push(isAbove(one.key, to, one.prices) ? { ...one, until } : one);
    else if (one.until + GONE_MS > now) next.push(one);
  }
  const gone = next.reduce(
    (sum, { key, prices }) => sum + (newPrices.has(key) ? 0 : 1 + Object.keys(prices.variants).length),
    0,
  );
  if (gone > GONE_PRICES_MAX)
    throw new RegistrationError([
      {
        key: 'document',
        wrong: `removes services with ${gone} prices within a day`,
        right: `at most ${GONE_PRICES_MAX}: keep the names of your services, or wait a day`,
      },
    ]);
  return next;
}

/** Adds the previous prices to the services whose price jumped. */
export function withRaises(
  services: readonly RegisteredService[],
  past: readonly PastPrice[],
): readonly RegisteredService[] {
  if (past.length === 0) return services;
  const known = new Map(past.map((one) => [one.key, one]));
  return services.map((registered) => {
    const key = keyOf(registered.service);
    const price = known.get(key);
    if (!price || !isAbove(key, pricesOfService(registered.service), price.prices, JUMP)) return registered;
    return { ...registered, raised: { until: price.until, was: price.prices } };
  });
}

export function atPrices(service: Service, { rates, variants, priceCap, nestedMax, byTask }: ServicePrices): Service {
  const common = { rates, variants };
  if (service.primitive === 'tool') return { ...service, ...common, priceCap };
  if (service.primitive !== 'agent') return { ...service, ...common };
  return {
    ...service,
    ...common,
    priceCap,
    agent: { ...service.agent, nestedMax, chargedPer: byTask ? 'task' : 'message' },
  };
}

function pricesOfService(service: Service): ServicePrices {
  const { rates, variants } = service;
  return {
    rates,
    variants,
    priceCap: service.primitive === 'tool' || service.primitive === 'agent' ? service.priceCap : null,
    nestedMax: service.primitive === 'agent' ? service.agent.nestedMax : 0n,
    byTask: service.primitive === 'agent' && service.agent.chargedPer === 'task',
  };
}

const partOf = ({ rates, variants }: ServicePrices, name: string): Rates =>
  Object.hasOwn(variants, name) ? variants[name]! : rates;

const partsOf = (one: ServicePrices, other: ServicePrices): ReadonlySet<string> =>
  new Set([...Object.keys(one.variants), ...Object.keys(other.variants)]);

/**
 * Both prices, with a price for each kind of image that one of them names. An image without a price of its own costs as
 * much as a more general kind, and not always as much as any image.
 */
function withAllKinds(key: string, one: ServicePrices, other: ServicePrices): readonly [ServicePrices, ServicePrices] {
  if (!key.startsWith('image/')) return [one, other];
  const kinds = imageKinds([...partsOf(one, other)]);
  const complete = (prices: ServicePrices): ServicePrices => ({
    ...prices,
    variants: Object.fromEntries(
      [...kinds]
        .filter(([name]) => name !== '')
        .map(([name, kind]) => [name, partOf(prices, imageVariant(prices.variants, kind) ?? '')]),
    ),
  });
  return [complete(one), complete(other)];
}

function isAbove(key: string, now: ServicePrices, before: ServicePrices, times = 1n): boolean {
  const [prices, was] = withAllKinds(key, now, before);
  if (ratesAbove(prices.rates, was.rates, times)) return true;
  if (prices.nestedMax > times * was.nestedMax || (was.byTask && !prices.byTask)) return true;
  if (prices.priceCap !== null && was.priceCap !== null && prices.priceCap > times * was.priceCap) return true;
  for (const name of partsOf(prices, was)) if (ratesAbove(partOf(prices, name), partOf(was, name), times)) return true;
  return false;
}

const min = (one: bigint, other: bigint): bigint => (one < other ? one : other);

function leastOf(key: string, prices: ServicePrices, current: ServicePrices): ServicePrices {
  const [one, other] = withAllKinds(key, prices, current);
  return {
    rates: leastRates(one.rates, other.rates),
    variants: Object.fromEntries(
      [...partsOf(one, other)].map((name) => [name, leastRates(partOf(one, name), partOf(other, name))]),
    ),
    priceCap:
      one.priceCap === null || other.priceCap === null
        ? (one.priceCap ?? other.priceCap)
        : min(one.priceCap, other.priceCap),
    nestedMax: min(one.nestedMax, other.nestedMax),
    byTask: one.byTask || other.byTask,
  };
}

interface PastPriceJson {
  readonly key: string;
  readonly until: number;
  readonly rates: Record<string, string>;
  readonly variants: Record<string, Record<string, string>>;
  readonly priceCap: string | null;
  readonly nestedMax: string;
  readonly byTask: boolean;
}

/** As JSON text, amounts as decimal strings. */
export function pastPricesToText(past: readonly PastPrice[]): string {
  return JSON.stringify(
    past.map(({ key, until, prices: { rates, variants, priceCap, nestedMax, byTask } }): PastPriceJson => ({
      key,
      until,
      rates: ratesToJson(rates),
      variants: Object.fromEntries(Object.entries(variants).map(([name, each]) => [name, ratesToJson(each)])),
      priceCap: priceCap?.toString() ?? null,
      nestedMax: nestedMax.toString(),
      byTask,
    })),
  );
}

export function pastPricesFromText(text: string): readonly PastPrice[] {
  return (JSON.parse(text) as readonly PastPriceJson[]).map(
    ({ key, until, rates, variants, priceCap, nestedMax, byTask }) => ({
      key,
      until,
      prices: {
        rates: ratesFromJson(rates),
        variants: Object.fromEntries(Object.entries(variants).map(([name, each]) => [name, ratesFromJson(each)])),
        priceCap: priceCap === null ? null : BigInt(priceCap),
        nestedMax: BigInt(nestedMax),
        byTask,
      },
    }),
  );
}
