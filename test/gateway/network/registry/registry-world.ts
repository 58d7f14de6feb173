import { onTestFinished } from 'vitest';
import { DatabaseError, type Database } from '#store';
import { parseRates } from '#billing/amounts';
import { createCatalog, type Catalog } from '../../../../src/server/catalog/catalog.ts';
import type { ModelService } from '../../../../src/server/config/service.ts';
import {
  createRegistry,
  type RegistryOptions,
  type Registry,
} from '../../../../src/gateway/network/registry/registry.ts';
import type { ProxyConnection } from '../../../../src/gateway/network/registry/presence.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

/** One gateway's registry on a database, with what it told. */
export interface TestNode {
  readonly id: string;
  readonly registry: Registry;
  readonly catalog: Catalog;
  readonly superseded: string[];
  readonly returned: string[];
  readonly errors: Error[];
  readonly restored: () => number;
}

export type NodeOptions = Partial<Omit<RegistryOptions, 'database' | 'node'>> & {
  readonly id?: string;
  readonly url?: string | null;
};

let nodes = 0;
let connections = 0;

export async function startNode(
  database: Database,
  { id = `node-${++nodes}`, url = `https://${id}.test:7000`, ...options }: NodeOptions = {},
): Promise<TestNode> {
  const catalog = createCatalog();
  const errors: Error[] = [];
  let restored = 0;
  const registry = await createRegistry({
    database,
    catalog,
    node: { id, url },
    now: Date.now,
    graceMs: 60_000,
    pollMs: 20,
    onError: (error) => errors.push(error),
    onRestored: () => void restored++,
    ...options,
  });
  onTestFinished(() => registry.close());
  const superseded: string[] = [];
  const returned: string[] = [];
  registry.onSuperseded((connection) => superseded.push(connection));
  registry.onReturned((provider) => returned.push(provider));
  return { id, registry, catalog, superseded, returned, errors, restored: () => restored };
}

/** A connection that has not joined yet. */
export function connectionOf(provider: string, network = 'g7f0000'): ProxyConnection {
  return { id: `connection-${++connections}`, provider, account: `solana:${provider}`, network };
}

/** A connection of the provider that has joined. */
export async function joined({ registry }: Pick<TestNode, 'registry'>, provider: string): Promise<ProxyConnection> {
  const connection = connectionOf(provider);
  await registry.join(connection);
  return connection;
}

/** A model as a provider registers it. */
export function model(
  name: string,
  { providerName = 'Acme', price = 1 }: { readonly providerName?: string; readonly price?: number } = {},
): ModelService {
  return {
    primitive: 'model',
    name,
    displayName: name,
    providerName,
    description: '',
    rates: parseRates({ prompt: price, completion: price }),
    variants: {},
    model: {
      upstreamModel: name,
      contextLength: 1000,
      maxOutputTokens: null,
      inputModalities: ['text'],
      outputModalities: ['text'],
    },
  };
}

/** Names of the offers in a catalogue, as `<provider id>:<service>`, sorted. */
export const listed = ({ catalog }: TestNode): string[] =>
  catalog
    .offers()
    .map(({ provider, service }) => `${provider.id}:${service}`)
    .sort();

/** Resolves when the condition holds; the time it took, in milliseconds. */
export async function until(condition: () => boolean | Promise<boolean>, ms = 60_000): Promise<number> {
  const begun = performance.now();
  while (!(await condition())) {
    if (performance.now() - begun > atThisLoad(ms))
      throw new Error(`not within ${atThisLoad(ms)} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return performance.now() - begun;
}

/**
 * A database that can be cut off from one gateway, as by a network that parts them: whatever it asks fails, until
 * it is healed.
 */
export interface Severable extends Database {
  sever(): void;
  heal(): void;
}

export function severable(database: Database): Severable {
  let severed = false;
  const reach = async <T>(run: () => Promise<T>): Promise<T> => {
    if (severed) throw new DatabaseError('no route to the database', { code: 'connection', unavailable: true });
    const value = await run();
    // What was on its way is lost: it has happened, and this gateway does not know.
    if (severed)
      throw new DatabaseError('the connection to the database was cut', { code: 'connection', unavailable: true });
    return value;
  };
  return {
    engine: database.engine,
    query: (...args) => reach(() => database.query(...args)),
    batch: (...args) => reach(() => database.batch(...args)),
    snapshot: (run, temporary) => reach(() => database.snapshot(run, temporary)),
    close: () => database.close(),
    sever: () => void (severed = true),
    heal: () => void (severed = false),
  };
}
