import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { pauses } from '../../../support/pauses.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';

// The home of the operator: its sums are those of the books, the margin follows from the cost of offers, and every
// failure has a cause.

interface Sums {
  readonly requests: number;
  readonly failed: number;
  readonly charged_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly cost_micro_usd: number;
  readonly margin_micro_usd: number;
  readonly unknown_cost_micro_usdc: number;
}
interface Overview {
  readonly totals: Sums;
  readonly accounts: number;
  readonly by_time: readonly Sums[];
  readonly failures: readonly { readonly cause: string; readonly failed: number }[];
  readonly customers: readonly (Sums & { readonly account: string })[];
  readonly services: readonly (Sums & { readonly service: string })[];
  readonly providers: readonly (Sums & {
    readonly name: string;
    readonly own: boolean;
    readonly failing: object | null;
  })[];
  readonly money: Readonly<Record<string, number>>;
  readonly alerts: readonly { readonly message: string; readonly count: number }[];
  readonly gateways: readonly {
    readonly state: string;
    readonly version: string;
    readonly answers: boolean;
    readonly checks: object;
  }[];
}

let spine: Spine;
const admin = async (path: string, key = spine.adminKey) => {
  const answer = await fetch(`${spine.origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
  return { status: answer.status, body: (await answer.json()) as { readonly data: Overview } };
};
const overview = async (range = '24h') => (await admin(`/overview?range=${range}`)).body.data;
const callsOf = ({ requests, failed }: Sums) => requests + failed;

beforeAll(async () => {
  const priced = modelBlock({
    name: 'vendor/chat',
    provider: 'Vendor',
    url: '{provider}',
    prompt: 10,
    completion: 20,
    lines: 'cost = { prompt = 30, completion = 60 }',
  });
  const dead = modelBlock({ name: 'gone/chat', provider: 'Gone', url: 'http://127.0.0.1:9/v1' });
  spine = await startSpine({
    toml: `${UNHURRIED}\n[billing]\nfee_bps = 5000\n[analytics]\nevery_ms = 50\n${priced}${dead}`,
  });
  const other = await spine.tenant('acme', '5');
  for (const [body, key] of [
    [ask('hello'), spine.key],
    [ask('hello', { model: 'vendor/chat' }), other.key],
    [ask('!status:500'), other.key],
  ] as const)
    await (await spine.post('/chat/completions', body, { authorization: `Bearer ${key}` })).text();
  await spine.quiet();
  for (const pause of pauses()) {
    if (callsOf((await overview()).totals) === 3) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test.each([
  ['24h', 24],
  ['7d', 7],
  ['30d', 30],
])('the sums of %s are those of the books', async (range, length) => {
  const { totals, by_time: times, customers, services, providers, accounts } = await overview(range);
  expect(totals).toMatchObject({ requests: 2, failed: 1 });
  expect(times).toHaveLength(length);
  const [spent] = await spine.app.database.query({
    name: 'test/charged',
    text: 'SELECT CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(fee) AS BIGINT) AS fee FROM locks',
  });
  expect([totals.charged_micro_usdc, totals.fee_micro_usdc]).toEqual([
    Number(spent!['charged']),
    Number(spent!['fee']),
  ]);
  expect(accounts).toBe(2);
  for (const rows of [times, customers, services]) {
    expect(rows.reduce((sum, row) => sum + row.charged_micro_usdc, 0)).toBe(totals.charged_micro_usdc);
    expect(rows.reduce((sum, row) => sum + callsOf(row), 0)).toBe(3);
  }
  // Nobody served the call that failed.
  expect(providers.reduce((sum, row) => sum + row.charged_micro_usdc, 0)).toBe(totals.charged_micro_usdc);
  expect(providers.map(({ own }) => own)).toEqual([true, true]);
});

test('a service whose vendor costs more than its price has a negative margin', async () => {
  const { totals, services } = await overview();
  const vendor = services.find(({ service }) => service === 'vendor/chat')!;
  expect(vendor.cost_micro_usd).toBe(3 * vendor.charged_micro_usdc);
  expect(vendor.margin_micro_usd).toBe(vendor.charged_micro_usdc - vendor.cost_micro_usd);
  const unpriced = services.find(({ service }) => service === 'test/model')!;
  expect(unpriced.fee_micro_usdc).toBeGreaterThan(0);
  expect(unpriced).toMatchObject({ cost_micro_usd: 0, margin_micro_usd: unpriced.fee_micro_usdc });
  expect(unpriced.unknown_cost_micro_usdc).toBe(unpriced.charged_micro_usdc - unpriced.fee_micro_usdc);
  expect(totals.unknown_cost_micro_usdc).toBe(unpriced.unknown_cost_micro_usdc);
  expect(totals.margin_micro_usd).toBe(vendor.margin_micro_usd + unpriced.margin_micro_usd);
});

test('a failed call has its cause, and its record says that it failed', async () => {
  const { failures, customers } = await overview();
  expect(failures).toEqual([{ cause: 'provider_unavailable', failed: 1 }]);
  const { account } = customers.find(({ failed }) => failed > 0)!;
  const calls = await admin(`/accounts/${encodeURIComponent(account)}/calls`);
  const { data } = calls.body as unknown as { readonly data: readonly { failed: boolean; error_code: string }[] };
  expect(data.map(({ failed, error_code: code }) => [failed, code])).toEqual([
    [true, 'provider_unavailable'],
    [false, null],
  ]);
});

test('money at rest is what the ledger has', async () => {
  const { money, totals } = await overview();
  const balances = await Promise.all(
    [spine.account, 'tollgate:local:acme'].map((account) => spine.app.ledger.balance(`escrow:${account}`)),
  );
  expect(money['deposits_micro_usdc']).toBe(Number(balances.reduce((sum, one) => sum + one!.available, 0n)));
  expect(money).toMatchObject({
    locked_micro_usdc: 0,
    owed_to_providers_micro_usdc: 0,
    operator_micro_usdc: totals.charged_micro_usdc,
    grants_micro_usdc: 105_000_000,
  });
});

test('the gateway that answers is listed with its version, and what it warned of is an alert', async () => {
  const { gateways, alerts } = await overview();
  expect(gateways).toMatchObject([{ state: 'ready', answers: true, checks: { gateway: 'ok', database: 'ok' } }]);
  expect(gateways[0]!.version).toMatch(/^\d+\.\d+\.\d+/);
  expect(alerts.map(({ message }) => message)).toContain('attempt failed');
});

test('it needs an admin key', async () => {
  expect((await admin('/overview', spine.key)).status).toBe(401);
  expect((await admin('/overview?range=1y')).status).toBe(400);
});

test('a provider whose calls all failed comes first, with its failures and why', async () => {
  const answer = await spine.post('/chat/completions', ask('hello', { model: 'gone/chat' }));
  expect([answer.status, await answer.text()]).toEqual([expect.any(Number), expect.stringContaining('error')]);
  expect(answer.status).toBeGreaterThanOrEqual(500);
  await expect
    .poll(async () => (await overview()).providers[0], { timeout: atThisLoad(30_000) })
    .toMatchObject({
      name: 'Gone',
      own: true,
      requests: 0,
      charged_micro_usdc: 0,
      failing: { attempts: expect.any(Number), service: 'gone/chat', reason: expect.stringMatching(/./) },
    });
  const { providers } = await overview();
  expect(providers.map(({ failing }) => failing === null)).toEqual([false, true, true]);
});
