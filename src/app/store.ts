import { connectRedis } from '#store';
import { offersFromConfig, withFirstSeen } from '#gateway';
import { createIdentity } from '#auth';
import type { Foundation, Opened } from './foundation.ts';
import { openJournaled } from './journal/journal.ts';

export type Store = Opened<typeof openStore>;

/** Phase 1: the database with the guard of its journal, the identity, Redis, and the offers of the configuration. */
export async function openStore(foundation: Foundation) {
  const { config, logger, opened, now } = foundation;
  // The database comes first: it holds the truth, and the rest can be rebuilt from it.
  const { database, journal } = await openJournaled(foundation);
  const identity = createIdentity(
    config.identitySeed === null ? { dataDir: config.dataDir } : { seed: config.identitySeed },
  );
  const onError = (error: unknown) => logger.debug({ err: error }, 'the Redis connection failed');
  const redis = config.redisUrl === null ? null : await connectRedis(config.redisUrl, { onError });
  if (redis) opened.defer(() => redis.disconnect());
  const offers = await withFirstSeen(
    database,
    offersFromConfig(config.services, { providerId: identity.providerId, createdAt: now() }),
  );
  return { ...foundation, database, journal, identity, redis, offers };
}
