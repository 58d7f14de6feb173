import { registerHooks } from 'node:module';
import type { ProviderV4 } from '@ai-sdk/provider';
import { isRecord } from './json.ts';
import type { StartMessage } from './messages.ts';

/** Stands for the package in an import, which the hook below resolves beside the operator's file. */
const PACKAGE = 'tollgate:package';

/**
 * Loads the package and makes its provider. Throws Error with a message for the operator's log: the package exports no
 * provider of version 4, or several.
 */
export async function loadProvider(message: StartMessage, ownFetch: typeof fetch): Promise<ProviderV4> {
  const { specifier, from, factory, settings } = message;
  const hooks = registerHooks({
    resolve: (name, context, next) =>
      name === PACKAGE ? next(specifier, { ...context, parentURL: from }) : next(name, context),
  });
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(PACKAGE)) as Readonly<Record<string, unknown>>;
  } finally {
    hooks.deregister();
  }
  const create = factoryOf(exported, specifier, factory);
  const provider: unknown = create({ ...settings, fetch: ownFetch });
  const { specificationVersion: version, languageModel } = members(provider);
  if (version !== 'v4' || typeof languageModel !== 'function')
    throw new Error(
      `${specifier} makes a provider of version ${String(version)}, but this gateway speaks v4 of @ai-sdk/provider`,
    );
  return provider as ProviderV4;
}

type Factory = (settings: Readonly<Record<string, unknown>>) => unknown;

/** A provider is an object, or a function with members. */
const members = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'function' || isRecord(value) ? (value as Readonly<Record<string, unknown>>) : {};

function factoryOf(exported: Readonly<Record<string, unknown>>, specifier: string, exportName: string | null): Factory {
  if (exportName !== null) {
    const value = exported[exportName];
    if (typeof value === 'function') return value as Factory;
    throw new Error(`${specifier} exports no function ${exportName}`);
  }
  const names = Object.keys(exported).filter(
    (name) => /^create[A-Z]/.test(name) && typeof exported[name] === 'function',
  );
  // Two names of one function, such as an old and a new one, are one.
  const different = [...new Map(names.map((name) => [exported[name], name])).values()];
  if (different.length === 1) return exported[different[0]!] as Factory;
  throw new Error(
    different.length === 0
      ? `${specifier} exports no function create…, so it is no provider of the AI SDK`
      : `${specifier} exports ${different.join(', ')}: name one, as in "${specifier}#${different[0]}"`,
  );
}
