import type { FastifyPluginAsync } from 'fastify';
import type { Database } from '#store';
import type { Catalog, Health, Pipeline } from '#gateway';
import { nonceRoutes, type createNonces, type Identity, type SignIn, type KeyStore } from '#auth';
import type { Registry } from '#network';
import { createEarnings, marketRoutes, ownPages } from '#pages';
import type { Mcp } from '#mcp';
import { modelsRoutes } from '#openai';

export interface PageRoutesDeps {
  readonly catalog: Catalog;
  readonly health: Health;
  readonly registry: Registry;
  readonly nonces: ReturnType<typeof createNonces>;
  readonly signIn: SignIn;
  readonly listings: Mcp['listings'];
  readonly identity: Identity;
  readonly database: Database;
  readonly admit: Pipeline['admit'];
  readonly keys: KeyStore;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
  readonly now: () => number;
}

/**
 * What there is to call and who offers it, for everybody; what a provider sees of itself; how a wallet begins to
 * sign in. Register it under `/api/v1`.
 */
export function pageRoutes({
  catalog,
  health,
  registry,
  nonces,
  signIn,
  listings,
  identity,
  database,
  admit,
  keys,
  networks,
  now,
}: PageRoutesDeps): FastifyPluginAsync {
  return async (server) => {
    await server.register(nonceRoutes({ nonces, signIn, now }));
    await server.register(modelsRoutes({ catalog, health, registry, admit, now }));
    await server.register(marketRoutes({ catalog, health, registry, listings, now }));
    await server.register(
      ownPages({ admit, keys, identity, registry, health, earnings: createEarnings(database), networks, now }),
    );
  };
}
