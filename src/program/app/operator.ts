import { createPayouts, createRefunds, listLocksOfProvider } from '#billing/compose';
import { nonceRoutes } from '#auth';
import { createStateStore } from '#authorization';
import { addKeySetRoute, createEarnings, marketRoutes, ownPages } from '#pages';
import { modelsRoutes } from '#openai';
import { accountParts, mountAccounts } from './accounts.ts';
import { mountAdministration } from './admin.ts';
import { mountAuthorization, mountPeople } from './authorization.ts';
import type { Phases } from './calls.ts';
import { type Analytics, mountFigures, openAnalytics } from './figures.ts';
import { mountHealth, readiness } from './health.ts';
import { openGatewayReports } from './gateways.ts';
import { API, mount } from './mount.ts';
import type { Protocols } from './protocols.ts';
import { openSweeper, type Swept } from './sweeper.ts';

/**
 * Phase 8: the routes beside the protocols, for visitors, for owners of accounts, for the operator and for monitoring.
 * It also starts the removal of old rows.
 */
export async function openOperator(phases: Phases, protocols: Protocols): Promise<Analytics> {
  const { foundation, money, access, network, calls } = phases;
  const { config, resources } = foundation;
  const analytics = await openAnalytics(foundation, network.routing.health, access.http.catalog);
  const parts = accountParts(phases);
  await mountFigures(phases, analytics);
  await mountMarket(phases, protocols);
  await mountAccounts(phases, parts, protocols);
  await mountPeople(phases);
  await mountAuthorization(phases, parts);
  const ready = readiness(phases);
  const gateways = openGatewayReports(phases, ready);
  await mountAdministration(phases, parts, protocols, { ...analytics, gateways });
  await mountHealth(phases, ready);
  addKeySetRoute(access.http.server, [
    ...money.receipts.jwks().keys,
    protocols.agents.cardKey.jwk,
    ...foundation.identity.otherKeys,
  ]);
  const sweeper = openSweeper({ ...foundation, ledger: money.ledger }, sweptOf(phases, protocols, analytics), {
    everyMs: config.billing.sweepMs,
    longestLockMs: calls.longestLockMs,
  });
  resources.defer(() => sweeper.close());
  return analytics;
}

/** The stores whose rows expire, by their names in the log. */
function sweptOf(
  { foundation, access, network, calls }: Phases,
  { openai, files, work }: Protocols,
  { oldUsage }: Analytics,
): Readonly<Record<string, Swept>> {
  const { responseStore, background } = openai.keptParts;
  return {
    idempotency: calls.idempotency,
    nonces: access.nonces,
    sessions: access.browsers.sessions,
    keptFigures: network.routing.keptFigures,
    registry: network.registry,
    quotes: calls.quotes,
    approvals: calls.approvals,
    keys: access.keys,
    unfundedAccounts: { sweep: calls.unfunded.sweep, restsAfterJump: true },
    blobs: files.blobs,
    keptResponses: responseStore,
    ...(background && { background: { sweep: background.sweep, restsAfterJump: true } }),
    files: openai.batches.files,
    batches: openai.batches.batches,
    notices: work.notices,
    oldUsage,
    // Also of an authorization server that was switched off.
    authorization: access.authorizationState ?? createStateStore(foundation.database, foundation.now),
  };
}

async function mountMarket({ foundation, observers, money, access, network, calls }: Phases, { mcp }: Protocols) {
  const { database, identity, networks, now } = foundation;
  const { http, keys, nonces, signIn } = access;
  const { registry, routing, payoutRules } = network;
  const { catalog, server } = http;
  const { health } = routing;
  const { listings } = mcp;
  const { admit, visitor } = calls.pipeline;
  const pages = {
    nonces: nonceRoutes({ nonces, signIn, now }),
    models: modelsRoutes({ catalog, health, registry, admit, visitor }),
    market: marketRoutes({ catalog, health, registry, listings, prices: money.prices, now }),
    ofProviders: ownPages({
      admit,
      keys,
      identity,
      registry,
      health,
      listings,
      lastFailures: observers.lastFailures,
      earnings: createEarnings(database),
      calls: (provider, before, limit) => listLocksOfProvider(database, provider, before, limit),
      payouts: createPayouts(database, money.ledger),
      refunds: createRefunds(database, money.ledger),
      payoutRules,
      networks,
      now,
    }),
  };
  await mount(server, pages, API);
}
