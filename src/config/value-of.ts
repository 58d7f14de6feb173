import { camelKey } from './camel-keys.ts';
import type { Config } from './config.ts';

/** Sections whose options are top-level fields of Config. See toConfig. */
const FLAT: readonly string[] = ['server', 'telemetry'];
export const URLS: Readonly<Record<string, 'databaseUrl' | 'redisUrl'>> = {
  database: 'databaseUrl',
  redis: 'redisUrl',
};

/** The value of an option, by its section and key in the file. undefined if the configuration lacks the section. */
export function valueOf(config: Partial<Config>, section: string, key: string): unknown {
  const flat = URLS[section];
  if (flat !== undefined) return config[flat];
  const names = config as unknown as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  return FLAT.includes(section) ? names[camelKey(key)] : names[camelKey(section)]?.[camelKey(key)];
}
