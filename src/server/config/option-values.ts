import { isDeepStrictEqual } from 'node:util';
import type { ChainConfig, KeyPlace } from './chains.ts';
import type { Config } from './config.ts';
import { SECTIONS } from './options.ts';
import { otlpHeaderPairs } from './options/telemetry.ts';
import { METERS, type Meter, rateInFile } from '#billing/amounts';
import type { ServiceConfig } from './service.ts';
import { camelKey } from './option.ts';

/* The values of a configuration by the names that its file uses: which of them are secret, and which of them differ. */

/** Sections whose options are top-level fields of Config, see toConfig. */
const FLAT: readonly string[] = ['server', 'telemetry'];
/** Sections of which Config has nothing but a URL, see toConfig. */
const URLS: Readonly<Record<string, 'databaseUrl' | 'redisUrl'>> = {
  database: 'databaseUrl',
  redis: 'redisUrl',
};

/** The value of an option, by its section and key in the file. undefined if the configuration lacks the section. */
function valueOf(config: Partial<Config>, section: string, key: string): unknown {
  const flat = URLS[section];
  if (flat !== undefined) return config[flat];
  const names = config as unknown as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  return FLAT.includes(section) ? names[camelKey(key)] : names[camelKey(section)]?.[camelKey(key)];
}

/**
 * All secrets of a configuration, so that they can be removed from texts. For the URLs of the stores and the collector
 * these are only their passwords.
 */
export function secretsOf(config: Partial<Config>): readonly string[] {
  const ofOptions = Object.entries(SECTIONS).flatMap(([section, table]) =>
    Object.entries(table)
      .filter(([, { secret }]) => secret)
      .map(([key]) => valueOf(config, section, key))
      .flatMap((value) => (URLS[section] === undefined ? value : passwordsOf(value))),
  );
  const ofServices = (config.services ?? []).flatMap(({ target }) =>
    target.kind === 'sdk' ? Object.values(target.secrets) : target.kind === 'http' ? target.apiKey : null,
  );
  const ofProviders = (config.providers ?? []).map(({ apiKey }) => apiKey);
  const ofChains = (config.chains ?? []).flatMap(({ rpcUrl, payments }) => [rpcUrl, ...keysOf(payments)]);
  // Each header value, and each of its words, so that the credential of `Bearer …` is included.
  const ofCollector = [
    ...otlpHeaderPairs(config.otlpHeaders ?? null).flatMap(([, value]) => [value, ...value.split(' ')]),
    ...passwordsOf(config.otlpEndpoint),
  ];
  return [...ofOptions, ...ofCollector, ...ofServices, ...ofProviders, ...ofChains].filter(
    (value) => typeof value === 'string',
  );
}

const keysOf = (payments: ChainConfig['payments']): readonly (string | null)[] =>
  payments === null ? [] : [payments.treasury, payments.previous].map(keyOf);
const keyOf = (place: KeyPlace | null): string | null =>
  place !== null && 'privateKey' in place ? place.privateKey : null;

/** The password of a URL, decoded and as written. Empty if the URL has no password. */
function passwordsOf(url: unknown): readonly string[] {
  const password = typeof url === 'string' ? (URL.parse(url)?.password ?? '') : '';
  return password === '' ? [] : [...new Set([decodeURIComponent(password), password])];
}

interface ConfigDifferences {
  /** Each changed option as `section.key`. */
  readonly options: readonly string[];
  /** Chains by their networks, such as `eip155:8453`. */
  readonly chains: NamedDifferences;
  /** Services in the form `model demo/echo of Demo`. */
  readonly services: NamedDifferences;
  /** Changed prices, such as `model demo/echo of Demo: prompt 0.5 -> 5`, in the units of the file. */
  readonly prices: readonly string[];
}

export interface NamedDifferences {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** The options, chains and services that differ between two configurations. A reload names them. */
export function configDifferences(before: Config, after: Config): ConfigDifferences {
  const options = Object.entries(SECTIONS).flatMap(([section, table]) =>
    Object.keys(table)
      .filter((key) => !isDeepStrictEqual(valueOf(before, section, key), valueOf(after, section, key)))
      .map((key) => `${section}.${key}`),
  );
  return {
    options,
    chains: compare(before.chains, after.chains, ({ network }) => network),
    services: compare(before.services, after.services, nameOf),
    prices: priceChanges(before.services, after.services),
  };
}

function priceChanges(before: readonly ServiceConfig[], after: readonly ServiceConfig[]): readonly string[] {
  const old = new Map(before.map((one) => [nameOf(one), one.service]));
  return after.flatMap((one) => {
    const { service } = one;
    const was = old.get(nameOf(one));
    if (was === undefined) return [];
    const amountOf = (meter: Meter, rate: bigint | undefined) =>
      rate === undefined ? 'none' : rateInFile(service.primitive, meter, rate);
    const changes = METERS.filter((meter) => was.rates[meter] !== service.rates[meter]).map(
      (meter) => `${meter} ${amountOf(meter, was.rates[meter])} -> ${amountOf(meter, service.rates[meter])}`,
    );
    // Tiers and variants have many.
    const isOther = !isDeepStrictEqual([was.rates, was.variants], [service.rates, service.variants]);
    if (changes.length === 0 && isOther) changes.push('prices of its tiers or variants');
    return changes.length === 0 ? [] : [`${nameOf(one)}: ${changes.join(', ')}`];
  });
}

const nameOf = ({ service }: ServiceConfig): string =>
  `${service.primitive} ${service.name} of ${service.providerName}`;

function compare<T>(before: readonly T[], after: readonly T[], name: (one: T) => string): NamedDifferences {
  const [old, now] = [new Map(before.map((one) => [name(one), one])), new Map(after.map((one) => [name(one), one]))];
  return {
    added: [...now.keys()].filter((key) => !old.has(key)),
    changed: [...now].filter(([key, one]) => old.has(key) && !isDeepStrictEqual(old.get(key), one)).map(([key]) => key),
    removed: [...old.keys()].filter((key) => !now.has(key)),
  };
}
