import {
  callGraceMs,
  createArrivals,
  createHealth,
  createRateLimiter,
  createRatePolicies,
  createRouter,
  openKeptFigures,
  type Offer,
} from '#gateway';
import { isPresent } from '#network';
import type { Opened } from './foundation.ts';
import type { Network } from './network.ts';

export type Routed = Opened<typeof openRouting>;

/** The choice of a provider for a call, and the rate limits of callers. */
export async function openRouting(network: Network) {
  const { config, logger, outages, opened, database, redis, registry, now, elapsed, random } = network;
  const limiter = createRateLimiter({
    redis,
    now: elapsed,
    onChange: (shared, error) =>
      shared
        ? logger.info('rate limits are shared through Redis again')
        : logger.warn({ err: error }, 'Redis does not answer: rate limits are local for now'),
  });
  const present = (offer: Offer) => isPresent(registry, offer);
  const health = createHealth({
    now: elapsed,
    epochOffsetMs: now() - elapsed(),
    cooldownMs: config.upstream.cooldownMs,
    present,
  });
  registry.onReturned(health.returned);
  const onError = (error: Error) =>
    outages.failed('figures of offers', { err: error }, 'the figures of offers cannot be saved; they are saved later');
  const keptFigures = await openKeptFigures({ database, figures: health, now, onError });
  opened.defer(() => keptFigures.close());
  const arrivals = createArrivals({ present, onReturned: registry.onReturned, waitMs: config.tunnel.waitMs });
  opened.defer(() => arrivals.close());
  return {
    ...network,
    graceMs: callGraceMs(config),
    limiter,
    policies: createRatePolicies(config.limits),
    present,
    health,
    keptFigures,
    arrivals,
    router: createRouter({ health, random, ...config.upstream, now: elapsed }),
  };
}
