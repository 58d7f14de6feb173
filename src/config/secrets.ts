import type { ChainConfig, Config, KeyPlace } from './config.ts';
import { SECTIONS } from './options.ts';
import { otlpHeaderPairs } from './otlp-headers.ts';
import { URLS, valueOf } from './value-of.ts';

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
  const ofServices = (config.services ?? []).map(({ target }) => (target.kind === 'http' ? target.apiKey : null));
  const ofChains = (config.chains ?? []).flatMap(({ rpcUrl, payments }) => [rpcUrl, ...keysOf(payments)]);
  // Each header value, and each of its words, so that the credential of `Bearer …` is included.
  const ofCollector = [
    ...otlpHeaderPairs(config.otlpHeaders ?? null).flatMap(([, value]) => [value, ...value.split(' ')]),
    ...passwordsOf(config.otlpEndpoint),
  ];
  return [...ofOptions, ...ofCollector, ...ofServices, ...ofChains].filter((value) => typeof value === 'string');
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
