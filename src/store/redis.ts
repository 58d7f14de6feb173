import type { Redis } from 'ioredis';

export type RedisClient = Redis;

interface RedisOptions {
  /** A command that has no answer after this long is rejected. */
  readonly commandTimeoutMs?: number;
  /** Told of lost and refused connections. */
  readonly onError?: (error: Error) => void;
}

/**
 * A client that is never waited for: it connects, and connects again for ever, in the background, and a command
 * that cannot be answered now is rejected within `commandTimeoutMs` and not repeated. Close with `disconnect()`.
 * The driver is loaded only here, so that a gateway without Redis does not pay for it.
 */
export async function connectRedis(
  url: string,
  { commandTimeoutMs = 1_000, onError = () => {} }: RedisOptions = {},
): Promise<RedisClient> {
  const { Redis: Client } = await import('ioredis');
  const client = new Client(url, {
    commandTimeout: commandTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    // The connection to a server that answers nothing is given up, so that commands do not pile up in it.
    socketTimeout: 3_000,
    retryStrategy: (attempts) => Math.min(1_000, 50 * 2 ** Math.min(attempts, 10)) * (0.75 + Math.random() / 2),
  });
  client.on('error', onError);
  return client;
}
