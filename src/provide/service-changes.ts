import { isDeepStrictEqual } from 'node:util';
import { isTable, type ServiceConfig } from '#config';
import { toRegistrationDocument } from '#network/tunnel';

/** A value of a service in words, by its path in the block without `pricing.`, such as `prompt` or `params.model`. */
type Values = ReadonlyMap<string, string>;

/**
 * The differences between the services of two files, one for each line: `~ model acme/large prompt 0.5 -> 0.6`,
 * `+ model acme/small prompt 0.1, completion 0.2` or `- model acme/old`. Addresses, commands and keys are named, but
 * their values are not shown. Empty if nothing changed.
 */
export function serviceChanges(before: readonly ServiceConfig[], after: readonly ServiceConfig[]): readonly string[] {
  const [old, now] = [byName(before), byName(after)];
  return [
    ...[...now].flatMap(([name, one]) => {
      const was = old.get(name);
      return was === undefined ? [`+ ${name} ${pricesOf(one)}`.trimEnd()] : changesOf(name, was, one);
    }),
    ...[...old.keys()].filter((name) => !now.has(name)).map((name) => `- ${name}`),
  ];
}

const byName = (services: readonly ServiceConfig[]): ReadonlyMap<string, ServiceConfig> =>
  new Map(services.map((one) => [`${one.service.primitive} ${one.service.name}`, one]));

function changesOf(name: string, before: ServiceConfig, after: ServiceConfig): readonly string[] {
  const [old, now] = [valuesOf(before), valuesOf(after)];
  const keys = [...new Set([...old.keys(), ...now.keys()])];
  return [
    ...keys
      .filter((key) => old.get(key) !== now.get(key))
      .map((key) => `~ ${name} ${key} ${old.get(key) ?? 'none'} -> ${now.get(key) ?? 'none'}`),
    ...hiddenChanges(before, after).map((what) => `~ ${name} ${what}`),
  ];
}

/** The changes of the place where the service runs, without values, which may be secret. */
function hiddenChanges({ target: old }: ServiceConfig, { target: now }: ServiceConfig): readonly string[] {
  if (isDeepStrictEqual(old, now)) return [];
  if (old.kind === 'http' && now.kind === 'http')
    return [
      ...(old.url === now.url ? [] : ['has another address']),
      ...(old.apiKey === now.apiKey ? [] : ['has another key']),
    ];
  return [old.kind === now.kind ? 'starts anew, as its command or its settings changed' : 'runs in another place'];
}

const pricesOf = (one: ServiceConfig): string =>
  [...valuesOf(one, 'pricing')].map(([key, value]) => `${key} ${value}`).join(', ');

/** `only`: one table of the block. */
function valuesOf({ service, target }: ServiceConfig, only?: string): Values {
  const { version: _, ...tables } = toRegistrationDocument([{ service, target }]);
  const block = Object.values(tables as Readonly<Record<string, readonly unknown[]>>)[0]?.[0];
  const values = new Map<string, string>();
  const walk = (value: unknown, path: readonly string[]): void => {
    if (isTable(value)) for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
    else if (value !== undefined && value !== null)
      values.set(path.join('.'), typeof value === 'string' ? value : JSON.stringify(value));
  };
  for (const [key, value] of Object.entries(isTable(block) ? block : {})) {
    if (key === 'name' || (only !== undefined && key !== only)) continue;
    walk(value, key === 'pricing' ? [] : [key]);
  }
  return values;
}
