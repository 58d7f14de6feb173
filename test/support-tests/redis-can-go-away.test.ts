import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { startRedis } from '../support/redis.ts';

it('is flushed, frozen, killed and started again on the same port', async () => {
  const server = await startRedis();
  const options = { retryStrategy: () => 20, maxRetriesPerRequest: null };
  const client = new Redis(server.url, options);
  // Only a frozen Redis is given up: one that runs may take its time.
  const impatient = new Redis(server.url, { ...options, commandTimeout: 200 });
  for (const one of [client, impatient]) one.on('error', () => {});
  try {
    await client.set('key', 'value');
    await server.flush();
    expect(await client.get('key')).toBeNull();

    server.freeze();
    await expect(impatient.get('key')).rejects.toThrow('Command timed out');
    impatient.disconnect();
    server.thaw();
    expect(await client.ping()).toBe('PONG');

    await client.set('key', 'value');
    await server.kill9();
    await server.restart();
    expect(await client.get('key')).toBeNull();
  } finally {
    impatient.disconnect();
    client.disconnect();
    await server.stop();
  }
});
