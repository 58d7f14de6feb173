import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startMixedCluster, type Cluster } from '../support/cluster.ts';
import type { GatewayHere } from '../support/gateway-here.ts';
import { evmWallet, signInHeaders, solanaWallet } from '../support/wallets.ts';

// One signed header, sent to three gateways in two processes at once, thirty times: one key is made, whichever gateway
// the nonce is of.

const REQUESTS = 30;
const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 500 : 6;

let cluster: Cluster<GatewayHere>;
beforeAll(async () => {
  cluster = await startMixedCluster({ postgresUrl: inject('postgresUrl'), redisUrl: inject('redisUrl') });
});
afterAll(() => cluster?.stop());

const api = (gateway: GatewayHere, path: string) => `${gateway.baseUrl}/api/v1${path}`;

test(`in each of ${ROUNDS} rounds`, { timeout: 600_000 }, async () => {
  const { gateways } = cluster;
  for (let round = 0; round < ROUNDS; round += 1) {
    const wallet = round % 2 === 0 ? solanaWallet() : evmWallet();
    const { nonce } = (await (await fetch(api(gateways[round % 3]!, '/auth/nonce'))).json()) as { nonce: string };
    const headers = { ...(await signInHeaders(wallet, { nonce })), 'content-type': 'application/json' };
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => {
        const response = await fetch(api(gateways[index % 3]!, '/keys'), { method: 'POST', headers, body: '{}' });
        return { status: response.status, body: (await response.json()) as { key?: string } };
      }),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(REQUESTS - 1);
    expect(answers.filter(({ body }) => body.key !== undefined)).toHaveLength(1);
    const key = answers.find(({ body }) => body.key !== undefined)!.body.key!;
    for (const gateway of gateways) {
      expect((await fetch(api(gateway, '/keys'), { method: 'POST', headers, body: '{}' })).status).toBe(401);
      // The key that was made is good at each, and the only one.
      const listed = await fetch(api(gateway, '/keys'), { headers: { authorization: `Bearer ${key}` } });
      expect(((await listed.json()) as { data: readonly unknown[] }).data).toHaveLength(1);
    }
  }
});
