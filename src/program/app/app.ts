import type { FastifyInstance } from 'fastify';
import type { Database } from '#store';
import type { AuditReport, Ledger } from '#billing';
import type { Config } from '#config';
import { GatewayStopping } from '#errors';
import { closeGracefully, createConnectionRelease } from '#http';
import type { Catalog } from '#catalog';
import type { KeyStore } from '#auth';
import type { Logger, Metrics } from '#observe';
import type { BudgetNotices } from '#webhooks';
import { openAccess } from './access.ts';
import { openCalls, type Phases } from './calls.ts';
import type { Analytics } from './figures.ts';
import { type AppOptions, openFoundation } from './foundation.ts';
import { openMoney } from './money.ts';
import { openNetwork } from './network.ts';
import { openObservers } from './observers.ts';
import { openOperator } from './operator.ts';
import { openProtocols, type Protocols } from './protocols.ts';
import { createReload, type Reload } from './reload.ts';
import { resealStored } from './seed-uses.ts';

export interface App {
  readonly server: FastifyInstance;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly keys: KeyStore;
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly analytics: Analytics;
  readonly notices: BudgetNotices;
  audit(): Promise<AuditReport>;
  readonly reload: Reload;
  /** Resolves with the address that the server listens on. */
  listen(): Promise<{ readonly url: string }>;
  /** Loads the web pages before the first visitor. In a checkout this may build them, in a separate process. */
  preparePages(): Promise<void>;
  /**
   * Prepares for `close`: load balancers are told to take another gateway, and each answer ends its connection. New
   * calls are still served.
   */
  announceStop(): void;
  /**
   * Refuses new calls at once, lets running ones finish within the drain limit, then closes everything. New connections
   * are answered with 503 until the running calls have finished; after `announceStop` they are refused.
   */
  close(): Promise<void>;
}

/**
 * Puts the modules together in phases. Each gets the results of phases before it and gives its own. If a phase fails,
 * everything that was opened is closed.
 */
export async function createApp(config: Config, options: AppOptions = {}): Promise<App> {
  await using resources = new AsyncDisposableStack();
  const foundation = await openFoundation(config, options, resources);
  const observers = await openObservers(foundation);
  const money = await openMoney(foundation, observers);
  const access = await openAccess(foundation, observers, money);
  const network = await openNetwork(foundation, observers, money, access);
  const calls = await openCalls(foundation, observers, money, access, network);
  const phases: Phases = { foundation, observers, money, access, network, calls };
  const protocols = await openProtocols(phases);
  if (config.secondIdentitySeed !== null) await resealStored(phases, protocols);
  const analytics = await openOperator(phases, protocols);
  return appOf(phases, protocols, analytics, resources.move());
}

function appOf(phases: Phases, protocols: Protocols, analytics: Analytics, resources: AsyncDisposableStack): App {
  const { config, database, logger } = phases.foundation;
  const { ledger, audit } = phases.money;
  const { http, keys, drain } = phases.access;
  const { tunnels, cluster, routing } = phases.network;
  const { pipeline, runningCalls } = phases.calls;
  const { mcp, openai, work } = protocols;
  const { a2a } = protocols.agents;
  const { server, catalog, web } = http;
  const drainMs = config.limits.drainOnShutdownMs;
  const release = createConnectionRelease(server);
  return {
    server,
    database,
    ledger,
    keys,
    catalog,
    logger,
    metrics: phases.observers.metrics,
    analytics,
    notices: work.notices,
    audit,
    reload: createReload(phases),
    async listen() {
      const url = await server.listen({ host: config.host, port: config.port });
      return { url };
    },
    preparePages: () => web.prepare(),
    announceStop() {
      if (drain.announced()) return;
      drain.announce();
      release.ask();
    },
    close: () =>
      closeGracefully({
        server,
        ...(drain.announced() ? { stopAccepting: release.stopAccepting } : {}),
        drainMs,
        inFlight: pipeline.inFlight,
        refuse() {
          drain.begin();
          routing.arrivals.close();
          mcp.drain();
          openai.realtime.drain();
          a2a.drain(drainMs);
        },
        // Tells the proxies to look for another gateway at once. Running calls in the tunnels, also those that came
        // from other gateways, may finish.
        closeTunnels: () => Promise.all([tunnels.close(drainMs), cluster.listener?.close(drainMs)]),
        stopCalls() {
          // Clients can still ask for what came of a response in the background, so it is cut and not failed.
          openai.keptParts.background?.stop();
          runningCalls.endAll(new GatewayStopping());
          openai.realtime.close();
        },
        closeRest: () => resources.disposeAsync(),
      }),
  };
}
