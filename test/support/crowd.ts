import { once } from 'node:events';
import { createServer, request as openRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { startMixedCluster, type ClusterOptions } from './cluster.ts';
import type { GatewayHere } from './gateway-here.ts';
import { modelBlock } from './spine.ts';

/** Three gateways of one database behind one address, of which one is killed while a crowd uses them. */
export interface CrowdWorld {
  /** `http://127.0.0.1:<port>` of the balancer. */
  readonly origin: string;
  readonly databaseUrl: string;
  /** The gateways that are not killed. */
  readonly here: GatewayHere;
  readonly there: GatewayHere;
  readonly killable: Awaited<ReturnType<typeof startMixedCluster>>['killable'];
  /**
   * Ends what began at the killed gateway, audits the books, and resolves with what each of these accounts has left, in
   * micro-USD.
   */
  close(accounts: readonly string[]): Promise<readonly number[]>;
  stop(): Promise<void>;
}

interface CrowdOptions extends Pick<ClusterOptions, 'postgresUrl'> {
  /** More of the configuration, for the address of the balancer. */
  readonly toml: (origin: string) => string | Promise<string>;
}

export async function startCrowdWorld({ postgresUrl, toml }: CrowdOptions): Promise<CrowdWorld> {
  let origins: readonly string[] = [];
  let turn = 0;
  /** Passes each request to the next gateway, as a load balancer without health checks does. */
  const balancer = createServer((request, response) => {
    const next = origins[(turn += 1) % origins.length]!;
    const passed = openRequest(next + request.url!, { method: request.method!, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    passed.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end('{}')));
    request.pipe(passed);
  });
  balancer.listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  const origin = `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
  const cluster = await startMixedCluster({
    postgresUrl,
    toml: `
[server]
public_url = "${origin}"
[limits]
requests_per_minute = 1000000
burst = 1000000
anonymous_requests_per_minute = 1000000
${await toml(origin)}
${modelBlock({ provider: 'Test', url: '{provider}', prompt: 0 })}`,
  });
  origins = cluster.gateways.map(({ baseUrl }) => baseUrl);
  const [, here, there] = cluster.gateways as [GatewayHere, GatewayHere, GatewayHere];
  return {
    origin,
    databaseUrl: cluster.databaseUrl,
    here,
    there,
    killable: cluster.killable,
    async close(accounts) {
      // What began at the killed gateway keeps its lock until it expires, which no clock of a test waits for.
      const database = await openDatabase({ url: cluster.databaseUrl, dataDir: '' });
      try {
        const ledger = await createLedger({ database });
        await ledger.expire(Date.now() + 86_400_000);
        await ledger.close();
      } finally {
        await database.close();
      }
      const { data } = (await here.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
      expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
      return Promise.all(
        accounts.map(async (account) => {
          const { data: balance } = (await here.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as {
            readonly data: { readonly balance_micro_usdc: number; readonly locked_micro_usdc: number };
          };
          expect(balance.locked_micro_usdc).toBe(0);
          return balance.balance_micro_usdc;
        }),
      );
    },
    async stop() {
      balancer.closeAllConnections();
      balancer.close();
      await cluster.stop();
    },
  };
}

/** More than a minute, longer than a busy machine takes to start the gateway again. */
const TRIES_MAX = 200;

/** Repeats what met a gateway that was just killed, or one that is busy. Any other failure counts. */
export async function persistently<T>(act: () => Promise<T>, isOver: (result: T) => boolean = () => true): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      const result = await act();
      if (isOver(result) || tries === TRIES_MAX) return result;
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(500, 20 * (tries + 1))));
  }
}

/** A gateway that was killed gives no answer, and one with more to do than it can says 503. */
export const isAnswer = ({ status }: { readonly status: number }): boolean => status !== 502 && status !== 503;
