import { isDeepStrictEqual } from 'node:util';
import type { Config, ServiceConfig } from './config.ts';
import { SECTIONS } from './options.ts';
import { valueOf } from './value-of.ts';

/** The differences between two configurations, with the names of the file. */
interface ConfigDifferences {
  /** Each changed option as `section.key`. */
  readonly options: readonly string[];
  /** Chains by their networks, such as `eip155:8453`. */
  readonly chains: NamedDifferences;
  /** Services in the form `model demo/echo of Demo`. */
  readonly services: NamedDifferences;
}

export interface NamedDifferences {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

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
  };
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
