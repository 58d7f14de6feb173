import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { endpointsOf, reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { offeredModel } from '../support/dial-in.ts';
import { startProvide } from '../support/provide-process.ts';
import { ask, events, type Spine } from '../support/spine.ts';
import { readStream } from '../support/tunnel-spine.ts';
import { evmWallet, signInHeaders, solanaWallet, type TestWallet } from '../support/wallets.ts';

// A provider runs `tollgate provide` with its keypair file and dials in at one gateway. The operator bans it at
// another, through which its calls come.

const BANNED = 'answers with another model than it names';

let cluster: Cluster<Spine>;
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2 });
});
afterAll(() => cluster?.stop());

test.each([
  ['solana', solanaWallet()],
  ['eip155', evmWallet()],
] as const)('a wallet of %s that is banned at one gateway sells at none, and keeps what it earned', async (...row) => {
  const [family, wallet] = row;
  const [dialled, other] = cluster.gateways as [Spine, Spine];
  const name = `${family}/model`;
  const origins = cluster.gateways.map(({ origin }) => origin);
  const provide = async (router: string) => {
    const services = offeredModel({ url: cluster.provider.url, name, provider: family });
    const proxy = await startProvide({ router, wallet, services });
    onTestFinished(() => proxy.stop());
    return proxy;
  };
  const call = async (gateway: Spine) => {
    const response = await gateway.post('/chat/completions', ask('hello !tokens:20', { model: name }));
    await response.text();
    return { status: response.status, provider: response.headers.get('x-provider') };
  };
  const at = `/providers/${encodeURIComponent(wallet.accountId)}`;

  const proxy = await provide(dialled.origin);
  await reachable(origins, name);
  for (const gateway of cluster.gateways) expect(await call(gateway)).toEqual({ status: 200, provider: family });
  const earned = await earningsOf(other, wallet);
  expect(earned).toBeGreaterThan(0);
  const running = await readStream(
    other.post('/chat/completions', ask('!tokens:20 !stall:900:1500', { model: name, stream: true })),
  );
  await running.tokens(1);

  expect(await admin(other, 'POST', `${at}/ban`, { reason: BANNED })).toMatchObject({
    data: { provider: wallet.providerId, banned: true, changed: true, seen: true },
  });
  expect((await call(other)).status).toBe(404);
  await until(
    async () => (await Promise.all(origins.map((origin) => endpointsOf(origin, name)))).flat().length === 0,
    'no gateway lists it',
  );
  for (const gateway of cluster.gateways) expect((await call(gateway)).status).toBe(404);

  // What ran across the gateways ends whole and is paid.
  expect(events(await running.end).at(-1)).toBe('[DONE]');
  const { state, cost_micro_usdc: cost } = await other.generation(running.response.headers.get('x-generation-id'));
  expect([state, cost > 0]).toEqual(['settled', true]);
  expect(await proxy.exited()).toBe(2);
  expect(proxy.logs()).toContain(BANNED);

  for (const origin of origins)
    await expect(provide(origin)).rejects.toThrow(`has banned provider ${wallet.providerId}: ${BANNED}`);
  expect((await call(dialled)).status).toBe(404);

  const left = await earningsOf(dialled, wallet);
  expect(left).toBeGreaterThan(earned);
  const payout = (amount: number, reference: string) =>
    admin(dialled, 'POST', `${at}/payouts`, { amount_micro_usdc: amount, reference: `${family} ${reference}` });
  expect(await payout(left + 1, 'too much')).toMatchObject({ error: { type: 'unprocessable' } });
  expect(await payout(left, 'the last')).toMatchObject({ data: { duplicate: false, earnings_micro_usdc: 0 } });

  expect(await admin(dialled, 'DELETE', `${at}/ban`)).toMatchObject({ data: { banned: false, changed: true } });
  await provide(other.origin);
  await reachable(origins, name);
  for (const gateway of cluster.gateways) expect(await call(gateway)).toEqual({ status: 200, provider: family });
  for (const gateway of cluster.gateways) expect(await gateway.faults()).toEqual([]);
});

/** What is owed to the wallet, as it reads it itself. */
async function earningsOf(gateway: Spine, wallet: TestWallet): Promise<number> {
  await gateway.quiet();
  const headers = await signInHeaders(wallet);
  const response = await fetch(`${gateway.url}/provider/earnings`, { headers });
  expect(response.status).toBe(200);
  const { available_micro_usdc: owed } = (await response.json()) as { readonly available_micro_usdc: number };
  return owed;
}

async function admin({ origin, adminKey }: Spine, method: string, path: string, body: object = {}): Promise<unknown> {
  const response = await fetch(`${origin}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}
