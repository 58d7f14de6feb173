import { afterAll, beforeAll, expect, test } from 'vitest';
import { pauses } from '../../../support/pauses.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';

// The operator's pages of services and of a provider: health has its true cause, margin follows from price and cost,
// and a test call is a billed call.

interface Offer {
  readonly service: string;
  readonly provider: string | null;
  readonly provider_name: string | null;
  readonly status: string | null;
  readonly status_since: string | null;
  readonly status_reason: string | null;
  readonly status_call: string | null;
  readonly failing_accounts: readonly string[];
  readonly worked_at: string | null;
  readonly price_since: string | null;
  readonly cost: Readonly<Record<string, number>> | null;
  readonly attempts: { readonly succeeded: number; readonly failed: number };
  readonly sums: Readonly<Record<string, number>>;
  readonly test_micro_usdc: number | null;
}

let spine: Spine;
const admin = async <T>(path: string, body?: object): Promise<{ readonly status: number; readonly data: T }> => {
  const answer = await fetch(`${spine.origin}/admin/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { data } = (await answer.json()) as { readonly data: T };
  return { status: answer.status, data };
};
const services = async () => (await admin<readonly Offer[]>('/services')).data;
const offerOf = async (name: string) =>
  (await services()).find(({ service, provider }) => service === name && provider)!;

beforeAll(async () => {
  const blocks = [
    modelBlock({
      name: 'vendor/chat',
      provider: 'Vendor',
      url: '{provider}',
      prompt: 10,
      completion: 20,
      lines: 'cost = { prompt = 30, completion = 60 }',
    }),
    modelBlock({ name: 'gone/chat', provider: 'Gone', url: 'http://127.0.0.1:9/v1' }),
    modelBlock({ name: 'idle/chat', provider: 'Idle', url: '{provider}' }),
  ];
  spine = await startSpine({
    toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 600000\n[analytics]\nevery_ms = 50\n${blocks.join('')}`,
  });
  for (const model of ['vendor/chat', 'gone/chat', 'test/model'])
    await (await spine.post('/chat/completions', ask('hello', { model }))).text();
  await spine.quiet();
  for (const pause of pauses()) {
    const all = await services();
    if (all.reduce((sum, { sums }) => sum + sums['requests']! + sums['failed']!, 0) === 3) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('healthy is only what was seen to work, and a failure has its cause, its call and its time', async () => {
  expect(await offerOf('vendor/chat')).toMatchObject({ status: 'healthy', status_reason: null, status_since: null });
  expect((await offerOf('vendor/chat')).worked_at).not.toBeNull();
  expect(await offerOf('idle/chat')).toMatchObject({ status: 'untried', worked_at: null, status_reason: null });
  const gone = await offerOf('gone/chat');
  expect(gone.status).toBe('cooling_down');
  expect(gone.status_reason).toMatch(/could not be reached|refused|connect/i);
  expect(Date.parse(gone.status_since!)).toBeGreaterThan(Date.now() - 60_000);
  expect(gone.status_call).toMatch(/^gen-/);
  const shown = (await (await spine.get('/services/model/idle/chat')).json()) as { readonly data: { status: string } };
  expect(shown.data.status).toBe('untried');
});

test('what fails for one account is not healthy for the operator, until a call succeeds; nobody else sees it', async () => {
  const publicly = async () =>
    (await (await spine.get('/services/model/test/model')).text()) +
    (await (await spine.get('/models/test/model/endpoints')).text()) +
    (await (await spine.get('/providers')).text());
  const before = Date.now();
  await (await spine.post('/chat/completions', ask('hello !status:500'))).text();
  const failing = await offerOf('test/model');
  expect(failing).toMatchObject({ status: 'degraded', failing_accounts: [spine.account] });
  expect(failing.status_reason).toContain('500');
  expect(Date.parse(failing.status_since!)).toBeGreaterThanOrEqual(before - 1_000);
  expect((await admin(`/calls/${failing.status_call!}`)).status).toBe(200);
  const shown = await publicly();
  expect(shown).toContain('"status":"healthy"');
  expect(shown).not.toContain('degraded');
  expect(shown).not.toContain('failing_accounts');
  expect(shown).not.toContain(spine.account);
  // Another account's success shows that it works.
  const { key } = await spine.tenant('another', '1');
  await (await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` })).text();
  expect(await offerOf('test/model')).toMatchObject({ status: 'healthy', status_since: null, failing_accounts: [] });
});

test('the margin of an offer follows from its price and its cost', async () => {
  const { sums, cost, price_since: since } = await offerOf('vendor/chat');
  expect(cost).toEqual({ prompt: 30, completion: 60 });
  expect(sums['cost_micro_usd']).toBe(3 * sums['charged_micro_usdc']!);
  expect(sums['margin_micro_usd']).toBe(-2 * sums['charged_micro_usdc']!);
  expect(Date.parse(since!)).toBeLessThanOrEqual(Date.now());
  expect((await offerOf('test/model')).cost).toBeNull();
});

test('the page of a provider has its offers, and its last errors with the ids of their calls', async () => {
  const { provider } = await offerOf('gone/chat');
  const found = await admin<{
    readonly name: string;
    readonly own: boolean;
    readonly offers: readonly Offer[];
    readonly failures: readonly { readonly call: string; readonly account: string; readonly reason: string }[];
  }>(`/providers/${provider!}`);
  expect(found.data).toMatchObject({ name: 'Gone', own: true });
  expect(found.data.offers.map(({ service }) => service)).toEqual(['gone/chat']);
  const [failure] = found.data.failures;
  expect(failure).toMatchObject({ account: spine.account });
  expect((await admin(`/calls/${failure!.call}`)).status).toBe(200);
  expect((await admin('/providers/11111111111111111111111111111111')).status).toBe(404);
});

test("a test call is billed to the operator's account, at most at the stated cost", async () => {
  interface Test {
    readonly ok: boolean;
    readonly call: string | null;
    readonly answer: string | null;
    readonly error: string | null;
    readonly error_code: string | null;
    readonly cost_micro_usdc: number;
  }
  const run = (service: string) => admin<Test>('/services/test', { service });
  const poor = await run('vendor/chat');
  expect(poor.data).toMatchObject({ ok: false, error_code: 'escrow_not_setup', cost_micro_usdc: 0 });
  expect(poor.data.error).toContain('tollgate:local:operator');
  await admin('/accounts', { name: 'operator' });
  await admin('/accounts/tollgate%3Alocal%3Aoperator/credit', { amount_usd: '1', reference: 'tests' });
  const { data } = await run('vendor/chat');
  expect(data).toMatchObject({ ok: true, error: null });
  expect(data.answer).not.toBe('');
  expect(data.cost_micro_usdc).toBeGreaterThan(0);
  expect(data.cost_micro_usdc).toBeLessThanOrEqual((await offerOf('vendor/chat')).test_micro_usdc!);
  const balance = await spine.app.ledger.balance('escrow:tollgate:local:operator');
  expect(balance).toEqual({ available: 1_000_000n - BigInt(data.cost_micro_usdc), locked: 0n });
  expect((await spine.app.keys.list('tollgate:local:operator', { offset: 0, limit: 10 })).length).toBe(0);
  expect((await run('gone/chat')).data).toMatchObject({ ok: false, answer: null, cost_micro_usdc: 0 });
  expect((await run('nobody/chat')).status).toBe(404);
});
