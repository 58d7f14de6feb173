import { GatewayError } from '#errors';
import { networkOf } from '#security';
import { dropOldest } from '#wire';

/**
 * Counts failed credentials by client address. So a client can neither guess many credentials nor keep the gateway busy
 * with checks.
 */
export interface Attempts {
  /**
   * Runs the check of an unknown credential. A rejection with `unauthorized` counts as a failure. After too many
   * failures in a minute, rejects with GatewayError `rate_limit_exceeded` and does not run the check. The number of
   * concurrent checks is limited to the failures that the address has left. Further checks wait.
   */
  check<T>(address: string, run: () => T | Promise<T>): Promise<T>;
}

interface AttemptsOptions {
  readonly perMinute: number;
  readonly now: () => number;
}

/** The limit of tracked addresses. Beyond it, the address with the oldest last failure is dropped. */
const CLIENTS_MAX = 10_000;
const WAITING_MAX = 1_000;
const SECOND_MS = 1_000;
const WINDOW_S = 60;

interface ClientAttempts {
  /** Failures by second, the oldest first. */
  readonly failed: { readonly second: number; count: number }[];
  pending: number;
  waiting: (() => void)[];
}

export function createAttempts({ perMinute, now }: AttemptsOptions): Attempts {
  const clients = new Map<string, ClientAttempts>();

  const clientAt = (key: string): ClientAttempts => {
    let client = clients.get(key);
    if (!client) {
      dropOldest(clients, CLIENTS_MAX - 1);
      clients.set(key, (client = { failed: [], pending: 0, waiting: [] }));
    }
    return client;
  };

  const failuresOf = ({ failed }: ClientAttempts): number => {
    const second = Math.floor(now() / SECOND_MS);
    while (failed.length > 0 && (failed[0]!.second <= second - WINDOW_S || failed[0]!.second > second)) failed.shift();
    return failed.reduce((sum, { count }) => sum + count, 0);
  };

  const fail = (key: string, client: ClientAttempts) => {
    const second = Math.floor(now() / SECOND_MS);
    const last = client.failed.at(-1);
    if (last?.second === second) last.count += 1;
    else client.failed.push({ second, count: 1 });
    clients.delete(key);
    clients.set(key, client);
  };

  const finish = (key: string, client: ClientAttempts) => {
    client.pending -= 1;
    const failures = failuresOf(client);
    const all = client.pending === 0 || failures >= perMinute;
    for (const wake of client.waiting.splice(0, all ? client.waiting.length : 1)) wake();
    if (client.pending === 0 && failures === 0 && client.waiting.length === 0 && clients.get(key) === client)
      clients.delete(key);
  };

  return {
    async check(address, run) {
      const key = networkOf(address);
      let client = clientAt(key);
      for (;;) {
        const failures = failuresOf(client);
        if (failures >= perMinute) throw tooMany(secondsUntilRoom(client, failures - perMinute, now()));
        if (failures + client.pending < perMinute) break;
        if (client.waiting.length >= WAITING_MAX) throw tooMany(1);
        await new Promise<void>((resolve) => client.waiting.push(resolve));
        client = clientAt(key);
      }
      client.pending += 1;
      try {
        return await run();
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'unauthorized') fail(key, client);
        throw error;
      } finally {
        finish(key, client);
      }
    },
  };
}

/**
 * Seconds until enough failures have left the window to allow one more attempt. `over`: the number of failures above
 * the limit.
 */
function secondsUntilRoom({ failed }: ClientAttempts, over: number, at: number): number {
  let gone = 0;
  for (const { second, count } of failed) {
    gone += count;
    if (gone > over) return Math.max(1, second + WINDOW_S - Math.floor(at / SECOND_MS));
  }
  return WINDOW_S;
}

function tooMany(seconds: number): GatewayError {
  return new GatewayError(
    'rate_limit_exceeded',
    `Too many keys or sign-ins from your address failed: retry in ${seconds} s`,
    {
      retryAfterS: seconds,
    },
  );
}
