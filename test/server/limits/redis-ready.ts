import { once } from 'node:events';
import type { RedisClient } from '../../../src/foundation/store/redis.ts';

/** Waits until commands can be sent. */
export async function whenReady(redis: RedisClient): Promise<void> {
  if (redis.status !== 'ready') await once(redis, 'ready');
}
