import { type ChainConfig, type Config, configDifferences, ConfigError, type NamedDifferences } from '#config';
import { pricesOf } from '#network';
import { PaymentsSetupError } from '#payments/on-chains';
import type { Phases } from './calls.ts';
import { offersOf, type ReloadReport } from './foundation.ts';

/**
 * Takes the services and the limits of a new configuration. Running calls finish with the services and prices that they
 * began with. Rejects with ConfigError, PaymentsSetupError or an error of the database, and then changes nothing.
 */
export type Reload = (load: () => Config | Promise<Config>) => Promise<ReloadReport>;

/** Limits that are read at each call, so that a reload can change them. The names are those in Config. */
const LIVE_LIMITS = [
  'requestsPerMinute',
  'burst',
  'accountRequestsPerMinute',
  'tokensPerMinute',
  'developmentRequestsPerMinute',
  'anonymousRequestsPerMinute',
  'sessionRequestsPerMinute',
] as const;
const nameInFile = (limit: string): string =>
  `limits.${limit.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
/** Options that a reload can change. */
const LIVE: ReadonlySet<string> = new Set(['server.log_level', 'tunnel.providers', ...LIVE_LIMITS.map(nameInFile)]);

export function createReload({ foundation, observers, money, access, network }: Phases): Reload {
  const { logger, database, identity, hideInLogs, now } = foundation;
  const { metrics, ownOffers } = observers;
  const { prices, chains: openedChains } = money;
  const { signIn, http } = access;
  const { registry, reservedNames, tunnels, packages, routing } = network;
  let running = foundation.config;

  const take = async (load: () => Config | Promise<Config>): Promise<ReloadReport> => {
    const next = await load();
    const { options, services, prices: priceChanges, chains } = configDifferences(running, next);
    const addedChains = openedChains.prepare === null ? [] : next.chains.filter(isNew(chains));
    await packages.prepare(next.services.map(({ target }) => target));
    const offers = await offersOf(next, { database, identity, now });
    await prices.remember(pricesOf(offers));
    // Before the chains are opened: the error of a chain's node may contain the key from its URL.
    hideInLogs(next);
    const prepared = await openedChains.prepare?.(addedChains);
    // No step can fail from here on, so the reload takes effect completely or not at all.
    prepared?.commit();
    signIn.addChains(addedChains);
    http.catalog.replace('config', offers);
    ownOffers.clear();
    for (const { id } of offers) ownOffers.add(id);
    reservedNames.replace(next.services);
    packages.keepOnly(next.services.map(({ target }) => target));
    registry.relist();
    tunnels.admitOnly(next.tunnel.providers);
    routing.policies.replace(next.limits);
    logger.level = next.logLevel;
    // Only the options that took effect are updated here. So the next reload reports again what waits for a restart.
    const { services: newServices, logLevel } = next;
    const limits = {
      ...running.limits,
      ...Object.fromEntries(LIVE_LIMITS.map((limit) => [limit, next.limits[limit]])),
    };
    const tunnel = { ...running.tunnel, providers: next.tunnel.providers };
    running = {
      ...running,
      services: newServices,
      logLevel,
      limits,
      tunnel,
      chains: [...running.chains, ...addedChains],
    };
    const open = new Set(addedChains.map(({ network }) => network));
    const waiting = [...chains.added, ...chains.changed, ...chains.removed].filter((network) => !open.has(network));
    return {
      services,
      prices: priceChanges,
      chains: [...open],
      options: options.filter((key) => LIVE.has(key)),
      restart: [...options.filter((key) => !LIVE.has(key)), ...waiting.map((network) => `chains ${network}`)],
    };
  };
  let last: Promise<unknown> = Promise.resolve();
  return (load) => {
    // Reloads run one after the other.
    const done = last.then(() => take(load));
    last = done.catch(() => {});
    return done.then(
      (report) => {
        metrics.reloaded('applied');
        const { services, prices: priceChanges, chains, options, restart } = report;
        logger.info({ ...services, prices: priceChanges, chains, options }, 'the configuration was reloaded');
        if (restart.length > 0)
          logger.warn({ options: restart }, 'these options keep their old values until the gateway is restarted');
        return report;
      },
      (error: unknown) => {
        metrics.reloaded('refused');
        const isToldInWords = error instanceof ConfigError || error instanceof PaymentsSetupError;
        logger.error(
          isToldInWords ? { reason: error.message } : { err: error },
          'the configuration was not reloaded: the old one stays in use',
        );
        throw error;
      },
    );
  };
}

const isNew =
  ({ added }: NamedDifferences) =>
  ({ network, payments }: ChainConfig): boolean =>
    payments !== null && added.includes(network);
