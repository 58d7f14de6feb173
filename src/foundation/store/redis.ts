import type { Redis } from 'ioredis';

export type RedisClient = Redis;

interface RedisOptions {
  /** A command without an answer is rejected after this time. */
  readonly commandTimeoutMs?: number;
  readonly onError?: (error: Error) => void;
}

/**
 * A client that never blocks its callers. It connects and reconnects in the background, for ever. A command without an
 * answer is rejected within `commandTimeoutMs` and not repeated. Close the client with `disconnect()`. The driver is
 * loaded here only, so that a gateway without Redis does not load it.
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
    // Closes the connection to a server that does not answer, so that commands do not pile up.
    socketTimeout: 3_000,
    retryStrategy: (attempts) => Math.min(1_000, 50 * 2 ** Math.min(attempts, 10)) * (0.75 + Math.random() / 2),
  });
  client.on('error', onError);
  return client;
}
