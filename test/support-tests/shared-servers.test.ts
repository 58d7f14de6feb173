import { Redis } from 'ioredis';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';

it('every test can reach the PostgreSQL and the Redis of the run', async () => {
  const client = new Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  expect((await client.query<{ sum: number }>('SELECT 1 + 1 AS sum')).rows).toEqual([{ sum: 2 }]);
  await client.end();

  const redis = new Redis(inject('redisUrl'));
  expect(await redis.ping()).toBe('PONG');
  await redis.quit();
});
