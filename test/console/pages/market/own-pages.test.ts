import { expect, test } from 'vitest';
import { earningsOf } from '#billing';
import { awayFromMidnight } from '../../../support/away-from-midnight.ts';
import { ask } from '../../../support/spine.ts';
import { signInHeaders, solanaWallet } from '../../../support/wallets.ts';
import { model, until } from '../../../gateway/network/registry/registry-world.ts';
import { startSupplied, type Supplier } from './supplied-spine.ts';

interface Earnings {
  readonly provider: string;
  readonly account: string;
  readonly available_micro_usdc: number;
  readonly total_earned_micro_usdc: number;
  readonly range: object;
  readonly by_day: readonly {
    readonly date: string;
    readonly requests: number;
    readonly earned_micro_usdc: number;
    readonly services: readonly object[];
  }[];
}
interface Services {
  readonly connected: boolean;
  readonly connected_since: string | null;
  readonly services: readonly { readonly listed_since: string }[];
}

const today = () => new Date().toISOString().slice(0, 10);

test('a provider sees what it earned and what it has registered, and nobody else does', async () => {
  await awayFromMidnight();
  const { spine, supply } = await startSupplied('[billing]\nfee_bps = 1000\n');
  const first = await supply(model('first/model', { providerName: 'First', price: 1000 }));
  const second = await supply(model('second/model', { providerName: 'Second', price: 2000 }), 'evm');
  const call = async ({ id, service }: Supplier, stream: boolean) => {
    const response = await spine.post(
      '/chat/completions',
      ask('hello !tokens:3', { model: `${id}:${service.name}`, stream }),
    );
    await response.text();
    expect(response.status).toBe(200);
    return (await spine.generation(response.headers.get('x-generation-id'))).cost_micro_usdc;
  };
  const costs = [await call(first, true), await call(first, false), await call(first, false)];
  const dear = await call(second, false);
  const earned = costs.reduce((sum, cost) => sum + cost - Math.floor(cost / 10), 0);
  expect(earned).toBeGreaterThan(0);

  const page = await first.page<Earnings>('/earnings');
  expect(page).toMatchObject({
    provider: first.id,
    account: first.wallet.accountId,
    available_micro_usdc: earned,
    total_earned_micro_usdc: earned,
    range: { end_date: today() },
  });
  expect(page.by_day).toHaveLength(8);
  expect(page.by_day[0]).toEqual({
    date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as string,
    requests: 0,
    earned_micro_usdc: 0,
    services: [],
  });
  expect(page.by_day.at(-1)).toEqual({
    date: today(),
    requests: 3,
    earned_micro_usdc: earned,
    services: [{ service: 'first/model', primitive: 'model', requests: 3, earned_micro_usdc: earned, flags: {} }],
  });
  expect((await first.page<Earnings>('/earnings?start_date=2020-01-01&end_date=2020-12-31')).by_day).toHaveLength(366);

  const other = await second.page<Earnings>('/earnings');
  expect(other).toMatchObject({
    provider: second.wallet.address.toLowerCase(),
    total_earned_micro_usdc: dear - Math.floor(dear / 10),
  });
  // All of them together are what the ledger has paid.
  expect(page.total_earned_micro_usdc + other.total_earned_micro_usdc).toBe(
    Number((await spine.audit()).totals.earnings),
  );
  expect(BigInt(page.available_micro_usdc)).toBe((await spine.app.ledger.balance(earningsOf(first.id)))!.available);

  const services = await first.page<Services>('/services');
  expect(services).toMatchObject({
    provider: first.id,
    account: first.wallet.accountId,
    connected: true,
    revision: 1,
    services: [
      {
        name: 'first/model',
        display_name: 'first/model',
        primitive: 'model',
        pricing: { prompt: 1000, completion: 1000, image: null },
        status: 'healthy',
        compliance: 1,
        last_hour: { requests: 3, failures: 0, flags: 0 },
        flags: {},
      },
    ],
  });
  for (const time of [services.connected_since, services.services[0]!.listed_since])
    expect(Math.abs(Date.now() - Date.parse(time!))).toBeLessThan(60_000);

  // Whose page it is cannot be asked for: the credential decides.
  const strangers = [
    await signInHeaders(second.wallet),
    await signInHeaders(solanaWallet()),
    { authorization: `Bearer ${spine.key}` },
  ];
  const asking = `?provider=${first.id}&id=${first.id}&account=${encodeURIComponent(first.wallet.account)}`;
  for (const headers of strangers) {
    for (const [path, status] of [
      ['earnings', 200],
      ['services', 200],
      // A page that takes parameters says that it knows no such one.
      [`earnings${asking}`, 400],
      [`services${asking}`, 200],
    ] as const) {
      const response = await fetch(`${spine.url}/provider/${path}`, {
        headers: { ...headers, 'x-provider': first.id },
      });
      expect(response.status).toBe(status);
      const text = await response.text();
      for (const secret of [first.id, first.wallet.address, 'first/model']) expect(text).not.toContain(secret);
    }
  }
  for (const path of ['earnings', 'services', `earnings${asking}`])
    expect((await fetch(`${spine.url}/provider/${path}`)).status).toBe(401);

  await first.leave();
  await until(async () => !(await first.page<Services>('/services')).connected);
  expect(await first.page('/services')).toMatchObject({
    connected: false,
    connected_since: null,
    services: [{ status: 'away' }],
  });
  expect(await spine.faults()).toEqual([]);
});

test('whoever never provided anything has earned 0 and registered nothing, by a wallet and by a key', async () => {
  const { spine } = await startSupplied();
  const wallet = solanaWallet();
  for (const headers of [await signInHeaders(wallet), { authorization: `Bearer ${spine.key}` }]) {
    const get = async (path: string) =>
      (await (await fetch(`${spine.url}/provider${path}`, { headers })).json()) as Record<string, unknown>;
    const earnings = await get('/earnings?start_date=2026-01-30&end_date=2026-02-01');
    expect(earnings).toMatchObject({
      available_micro_usdc: 0,
      total_earned_micro_usdc: 0,
      range: { start_date: '2026-01-30', end_date: '2026-02-01' },
      by_day: ['2026-01-30', '2026-01-31', '2026-02-01'].map((date) => ({
        date,
        requests: 0,
        earned_micro_usdc: 0,
        services: [],
      })),
    });
    const services = await get('/services');
    expect(services).toMatchObject({
      connected: false,
      connected_since: null,
      revision: 0,
      created_at: null,
      updated_at: null,
      services: [],
    });
    // A key's account has a public key of its own, always the same.
    expect(services['provider']).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    expect(services['provider']).toBe(earnings['provider']);
    expect(services['provider'] === wallet.address).toBe(!('authorization' in headers));
  }
});

test('what is no range of days is 400', async () => {
  const { spine } = await startSupplied();
  for (const [query, param] of [
    ['start_date=2026-01-02&end_date=2026-01-01', 'start_date'],
    ['start_date=2025-01-01&end_date=2026-01-02', 'start_date'],
    ['start_date=yesterday', 'start_date'],
    ['end_date=2026-02-30', 'end_date'],
    ['start_date=&end_date=', 'end_date'],
    [`start_date=${'1'.repeat(100)}`, 'start_date'],
    ['start_date=2026-01-01&start_date=2026-01-02', 'start_date'],
  ]) {
    const response = await spine.get(`/provider/earnings?${query}`);
    expect(response.status, query).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request', code: 400, param } });
  }
});
