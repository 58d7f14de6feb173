import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { startRedis } from '../support/redis.ts';

it('is flushed, frozen, killed and started again on the same port', async () => {
  const server = await startRedis();
  const client = new Redis(server.url, { retryStrategy: () => 20, commandTimeout: 200, maxRetriesPerRequest: null });
  client.on('error', () => {});
  try {
    await client.set('key', 'value');
    await server.flush();
    expect(await client.get('key')).toBeNull();

    server.freeze();
    await expect(client.get('key')).rejects.toThrow('Command timed out');
    server.thaw();
    await expect.poll(() => client.ping()).toBe('PONG');

    await client.set('key', 'value');
    await server.kill9();
    await server.restart();
    await expect.poll(() => client.get('key').catch(() => 'not yet')).toBeNull();
  } finally {
    client.disconnect();
    await server.stop();
  }
});
