import type { ChainConfig, Config, KeyPlace } from './config.ts';
import { SECTIONS } from './options.ts';
import { otlpHeaderPairs } from './otlp-headers.ts';
import { URLS, valueOf } from './value-of.ts';

/** Every secret of a configuration, for whoever keeps them out of texts. Of the address of a store its password. */
export function secretsOf(config: Partial<Config>): readonly string[] {
  const ofOptions = Object.entries(SECTIONS).flatMap(([section, table]) =>
    Object.entries(table)
      .filter(([, { secret }]) => secret)
      .map(([key]) => valueOf(config, section, key))
      .map((value) => (URLS[section] === undefined ? value : passwordOf(value))),
  );
  const ofServices = (config.services ?? []).map(({ target }) => (target.kind === 'http' ? target.apiKey : null));
  const ofChains = (config.chains ?? []).flatMap(({ rpcUrl, payments }) => [rpcUrl, ...keysOf(payments)]);
  // Each by itself, and the credential of `Bearer …` too.
  const ofCollector = otlpHeaderPairs(config.otlpHeaders ?? null).flatMap(([, value]) => [value, ...value.split(' ')]);
  return [...ofOptions, ...ofCollector, ...ofServices, ...ofChains].filter((value) => typeof value === 'string');
}

const keysOf = (payments: ChainConfig['payments']): readonly (string | null)[] =>
  payments === null ? [] : [payments.treasury, payments.previous].map(keyOf);
const keyOf = (place: KeyPlace | null): string | null =>
  place !== null && 'privateKey' in place ? place.privateKey : null;

const passwordOf = (url: unknown): string | null =>
  typeof url === 'string' && URL.canParse(url) ? decodeURIComponent(new URL(url).password) || null : null;
