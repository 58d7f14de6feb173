import { isDeepStrictEqual } from 'node:util';
import { ConfigError, isTable, type ServiceConfig } from '#config';
import { type RaisedPrice, type RegistrationProblem, toRegistrationDocument } from '#network/tunnel';
import type { Log } from './log.ts';
import { type ProviderConfig, secretsOf } from './provider-file.ts';
import type { Proxy } from './proxy.ts';
import type { Wallet } from './wallet/wallet.ts';

export interface ReloadReport {
  /** `refused`: by the router, so the old services stay. `waiting`: until the router is connected and accepts them. */
  readonly outcome: 'registered' | 'refused' | 'waiting';
  /** The differences between the services in force and those of the file, one for each line. */
  readonly changes: readonly string[];
  /** Keys that changed in the file, but keep their old value until the proxy is started again. */
  readonly restart: readonly string[];
  /** Services whose price has risen so much that calls must accept it for a while. */
  readonly raised: readonly RaisedPrice[];
  readonly problems: readonly RegistrationProblem[];
}

interface Loaded {
  readonly config: ProviderConfig;
  readonly wallet: Wallet | null;
}

interface ReloadOptions {
  readonly proxy: Pick<Proxy, 'reload' | 'services'>;
  readonly started: Loaded;
  readonly log: Log & { hide(secrets: readonly (string | null)[]): void };
}

/**
 * A function that reads the file of a running proxy again by `load`, and registers its services in place of the old
 * ones. Running calls go on. Rejects with the ConfigError of a file that has problems, which changes nothing.
 */
export function createReload({
  proxy,
  started,
  log,
}: ReloadOptions): (load: () => Promise<Loaded>) => Promise<ReloadReport> {
  const take = async (load: () => Promise<Loaded>): Promise<ReloadReport> => {
    const next = await load();
    log.hide(secretsOf(next.config));
    const restart = fixedChanges(started, next);
    const changes = serviceChanges(proxy.services(), next.config.services);
    const outcome = await proxy.reload(next.config.services);
    return {
      outcome: outcome.kind,
      changes,
      restart,
      raised: outcome.kind === 'registered' ? outcome.raised : [],
      problems: outcome.kind === 'refused' ? outcome.problems : [],
    };
  };

  let last: Promise<unknown> = Promise.resolve();
  return (load) => {
    const done = last.then(() => take(load));
    last = done.catch(() => {});
    return done.then(
      (report) => {
        tell(log, report);
        return report;
      },
      (error: unknown) => {
        const reason = error instanceof ConfigError ? error.message : error;
        log.error({ reason }, 'the file was not reloaded: the old one stays in use');
        throw error;
      },
    );
  };
}

function tell(log: Log, { outcome, changes, restart }: ReloadReport): void {
  if (outcome === 'registered') log.info({ changes }, 'the file was reloaded');
  if (outcome === 'waiting')
    log.warn({ changes }, 'the file was read: its services come into force when the router has accepted them');
  if (restart.length > 0) log.warn({ keys: restart }, 'these keep their old values until the proxy is started again');
}

/** The keys that a running proxy cannot change: they name the router, and who the provider is there. */
function fixedChanges(before: Loaded, after: Loaded): readonly string[] {
  const { router: old } = before.config;
  const { router: now } = after.config;
  const isOther = {
    'router.url': old.url !== now.url,
    // Without a domain of its own it follows the address.
    'router.siwx.domain': old.url === now.url && old.domain !== now.domain,
    'router.api_key': old.apiKey !== now.apiKey,
    'router.siwx': before.wallet?.accountId !== after.wallet?.accountId,
  };
  return Object.entries(isOther).flatMap(([key, changed]) => (changed ? [key] : []));
}

/** A value of a service in words, by its path in the block without `pricing.`, such as `prompt` or `params.model`. */
type Values = ReadonlyMap<string, string>;

/**
 * The differences between the services of two files, one for each line: `~ model acme/large prompt 0.5 -> 0.6`,
 * `+ model acme/small prompt 0.1, completion 0.2` or `- model acme/old`. Addresses, commands and keys are named, but
 * their values are not shown. Empty if nothing changed.
 */
function serviceChanges(before: readonly ServiceConfig[], after: readonly ServiceConfig[]): readonly string[] {
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
