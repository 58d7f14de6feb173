import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRpcFaultProxy } from '../../../support/chain/rpc-fault-proxy.ts';
import { startSpine } from '../../../support/spine.ts';
import { bearer, openFundsWorld, termsOf, type FundsWorld } from './funds-world.ts';

// What a gateway shows of its chains, and how it starts where one is away or set up wrongly.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld();
});
afterAll(() => world.stop());

const chainToml = (more = '') => `[[chains]]
network = "${world.network}"
rpc_url = "std::env::RPC_URL"
private_key = "std::env::TREASURY_KEY"
asset = "${world.token.address}"
asset_name = "${world.token.name}"
asset_version = "${world.token.version}"
timeout_ms = 500
${more}`;
const TREASURY_KEY = '5e'.repeat(32);

test('anybody sees what can be paid with', async () => {
  const { status, body } = await world.call('GET', '/payments/chains');
  expect([status, body.data]).toEqual([
    200,
    [
      {
        network: world.network,
        asset: world.token.address,
        treasury: world.treasury,
        answers: true,
        confirmations: 1,
        min_topup_micro_usdc: 500_000,
        min_topup_usd: '0.5',
        topup_max_micro_usdc: 50_000_000,
        withdrawal_min_micro_usdc: 1_000_000,
        withdrawal_fee_micro_usdc: 0,
        withdrawal_fee_usd: '0',
        token_account_fee_micro_usdc: 0,
        token_account_fee_usd: '0',
        withdrawal_daily_max_micro_usdc: 10_000_000_000,
      },
    ],
  ]);
});

test('the operator sees the books, the metrics show them, and an audit compares them now', async () => {
  const payer = await world.wallet();
  const terms = termsOf((await world.call('POST', '/topup', { body: { amount_usd: 3 } })).headers);
  expect(
    (await world.call('POST', '/topup', { headers: await world.pay(payer.signer, terms), body: { amount_usd: 3 } }))
      .status,
  ).toBe(200);
  const chain = { network: world.network, treasury: world.treasury, halted: null };
  expect((await world.admin('GET', '/audit?chain=true')).body.data).toMatchObject({
    ok: true,
    chains: {
      ok: true,
      chains: [{ ...chain, ok: true, held: 3_000_000, booked: 3_000_000, difference: 0, owed: 3_000_000, error: null }],
      losses: 0,
    },
  });
  expect((await world.admin('GET', '/audit')).body.data).not.toHaveProperty('chains');
  expect((await world.admin('GET', '/payments')).body.data).toMatchObject({
    chains: [
      {
        ...chain,
        answers: true,
        held_micro_usdc: 3_000_000,
        booked_micro_usdc: 3_000_000,
        withdrawals: { count: 0, oldest: null },
      },
    ],
    suspense_micro_usdc: 0,
    losses_micro_usdc: 0,
  });
  const metrics = await (
    await fetch(`${world.spine.origin}/metrics`, { headers: { authorization: `Bearer ${world.spine.adminKey}` } })
  ).text();
  expect(metrics).toContain(`tollgate_treasury_held_micro_usd{network="${world.network}"} 3000000`);
  expect(metrics).toContain(`tollgate_chain_answers{network="${world.network}"} 1`);
  expect(metrics).toMatch(new RegExp(`tollgate_treasury_compared_seconds\\{network="${world.network}"\\} \\d`));
  expect(await (await fetch(`${world.spine.origin}/health/ready`)).json()).toMatchObject({
    status: 'ok',
    checks: { treasuries: 'ok' },
  });
});

describe('a gateway whose chain', () => {
  test('is away starts, says so, and opens it when it is there', async () => {
    const node = await startRpcFaultProxy(world.anvil.url);
    node.set({ fault: { kind: 'refuse' } });
    const spine = await startSpine({
      credit: '0',
      env: { RPC_URL: node.url, TREASURY_KEY },
      toml: `[payments]\nwatch_ms = 100\n${chainToml()}`,
    });
    try {
      expect(
        spine.logs.some((line) => line.includes('the chain cannot be reached') && line.includes(world.network)),
      ).toBe(true);
      expect(spine.logs.join('')).not.toContain(TREASURY_KEY);
      const chains = async () =>
        ((await (await spine.get('/payments/chains')).json()) as { data: readonly { answers: boolean }[] }).data;
      expect(await chains()).toMatchObject([{ answers: false, treasury: null }]);
      const asked = await spine.post('/topup', { amount_usd: 1 });
      expect([asked.status, await asked.json()]).toMatchObject([402, { accepts: [] }]);
      expect(
        (
          await (
            await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } })
          ).text()
        ).includes(`tollgate_chain_answers{network="${world.network}"} 0`),
      ).toBe(true);
      node.heal();
      await world.until(chains, ([chain]) => chain!.answers);
      expect(spine.logs.some((line) => line.includes('the chain answers again'))).toBe(true);
    } finally {
      await spine.stop();
      await node.stop();
    }
  });

  test.each([
    [
      'is another one',
      { RPC_URL: '{anvil}', TREASURY_KEY },
      (toml: string) => toml.replace(/eip155:\d+/, 'eip155:424242'),
      'belongs to chain eip155:84532',
    ],
    [
      'has another asset',
      { RPC_URL: '{anvil}', TREASURY_KEY },
      (toml: string) => toml.replace(/asset_version = ".*"/, 'asset_version = "9"'),
      'EIP-712 domain',
    ],
    [
      'has no usable key',
      { RPC_URL: '{anvil}', TREASURY_KEY: '0'.repeat(64) },
      (toml: string) => toml,
      'The treasury of',
    ],
  ])('%s does not start', async (_what, env, change, says) => {
    const starting = startSpine({
      credit: '0',
      env: { ...env, RPC_URL: env.RPC_URL.replace('{anvil}', world.anvil.url) },
      toml: change(chainToml()),
    });
    await expect(starting).rejects.toMatchObject({
      name: 'PaymentsSetupError',
      message: expect.stringContaining(says),
    });
  });
});

test('a development gateway warns that play money could leave it, and play money itself cannot', async () => {
  const spine = await startSpine({
    mode: 'development',
    env: { RPC_URL: world.anvil.url, TREASURY_KEY },
    toml: chainToml(),
  });
  try {
    expect(spine.logs.some((line) => line.includes('a development gateway with chains'))).toBe(true);
    const body = JSON.stringify({ network: world.network, amount_usd: 1, source: 'balance' });
    const answer = await fetch(`${spine.url}/withdrawals`, {
      method: 'POST',
      headers: { ...bearer(spine.key), 'content-type': 'application/json' },
      body,
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { error: { message: expect.stringContaining('play money') } },
    ]);
  } finally {
    await spine.stop();
  }
});
