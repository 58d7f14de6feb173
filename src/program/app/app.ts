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
import { type Analytics, openOperator } from './operator.ts';
import { openFoundation, type AppOptions, openStore } from './foundation.ts';
import { openMiddle } from './middle.ts';
import { openMoney } from './money.ts';
import { openProtocols, type Protocols } from './protocols.ts';
import type { Reload } from './reload.ts';

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
  /** Takes the services and limits of a new configuration while calls go on. */
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
 * Puts the modules together in five phases. Each phase gets the parts of the phases before it and adds its own. If a
 * phase fails, everything that was opened is closed.
 */
export async function createApp(config: Config, options: AppOptions = {}): Promise<App> {
  await using opened = new AsyncDisposableStack();
  const store = await openStore(openFoundation(config, options, opened));
  const money = await openMoney(store);
  const middle = await openMiddle(money);
  const protocols = await openProtocols(middle);
  const { analytics } = await openOperator(protocols);
  return appOf(protocols, analytics, opened.move());
}

function appOf(protocols: Protocols, analytics: Analytics, opened: AsyncDisposableStack): App {
  const { config, server, database, ledger, keys, catalog, logger, metrics, notices, audit, reload } = protocols;
  const drainMs = config.limits.drainOnShutdownMs;
  const release = createConnectionRelease(server);
  return {
    server,
    database,
    ledger,
    keys,
    catalog,
    logger,
    metrics,
    analytics,
    notices,
    audit,
    reload,
    async listen() {
      const url = await server.listen({ host: config.host, port: config.port });
      return { url };
    },
    preparePages: () => protocols.web.prepare(),
    announceStop() {
      if (protocols.drain.announced()) return;
      protocols.drain.announce();
      release.ask();
    },
    close: () =>
      closeGracefully({
        server,
        ...(protocols.drain.announced() ? { stopAccepting: release.stopAccepting } : {}),
        drainMs,
        inFlight: protocols.pipeline.inFlight,
        refuse() {
          protocols.drain.begin();
          protocols.arrivals.close();
          protocols.mcp.drain();
          protocols.realtime.drain();
          protocols.a2a.drain(drainMs);
        },
        // Tells the proxies to look for another gateway at once. Running calls in the tunnels, also those that came
        // from other gateways, may finish.
        closeTunnels: protocols.closeTunnels,
        stopCalls() {
          // Clients can still ask for what came of a response in the background, so it is cut and not failed.
          protocols.background?.stop();
          protocols.runningCalls.endAll(new GatewayStopping());
          protocols.realtime.close();
        },
        closeRest: () => opened.disposeAsync(),
      }),
  };
}
