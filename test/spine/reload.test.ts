import { expect, it } from 'vitest';
import { ask, modelBlock, MODEL, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The file changes while the gateway runs: services, prices and limits are taken, the rest is told.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

const NAME = 'other/model';
const block = (prompt: number, url = '{provider}') =>
  modelBlock({ name: NAME, provider: 'Other', url, prompt, completion: 0 });

interface Report {
  readonly services: { readonly added: string[]; readonly changed: string[]; readonly removed: string[] };
  readonly prices: string[];
  readonly options: string[];
  readonly restart: string[];
}

const post = () =>
  fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
async function reload(toml: string): Promise<Report> {
  spine.writeFile(toml);
  const response = await post();
  const body = (await response.json()) as { data: Report };
  expect(response.status, JSON.stringify(body)).toBe(200);
  return body.data;
}
const call = (model: string, more: object = {}) => spine.post('/chat/completions', { ...ask('hello', more), model });
const reloads = async () =>
  Object.fromEntries(
    [...(await spine.app.metrics.text()).matchAll(/^tollgate_reloads_total\{outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => [outcome, Number(count)],
    ),
  );

it('takes a new service, its new price, and lets it go', async () => {
  expect((await call(NAME)).status).toBe(404);
  expect(await reload(UNHURRIED + block(3))).toEqual({
    services: { added: [`model ${NAME} of Other`], changed: [], removed: [] },
    prices: [],
    chains: [],
    options: [],
    restart: [],
  });
  const first = await call(NAME);
  const cost = ((await first.json()) as { usage: { cost: number } }).usage.cost;
  expect(first.status).toBe(200);
  const { services, prices } = await reload(UNHURRIED + block(6));
  expect([services.changed, prices]).toEqual([[`model ${NAME} of Other`], [`model ${NAME} of Other: prompt 3 -> 6`]]);
  const second = await call(NAME);
  expect(((await second.json()) as { usage: { cost: number } }).usage.cost).toBeCloseTo(2 * cost, 9);
  expect((await reload(UNHURRIED)).services.removed).toEqual([`model ${NAME} of Other`]);
  expect((await call(NAME)).status).toBe(404);
  expect((await call(MODEL)).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
});

it('leaves a running call its price, and its provider, which is gone from the file', async () => {
  await reload(UNHURRIED + block(3));
  const quiet = await call(NAME);
  const { usage } = (await quiet.json()) as { usage: { cost: number } };
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = spine.provider.log.length;
  spine.provider.hold(promise);
  const running = call(NAME);
  await expect.poll(() => spine.provider.log.length).toBe(before + 1);
  await reload(UNHURRIED + block(300));
  await reload(UNHURRIED);
  spine.provider.hold(null);
  resolve();
  const response = await running;
  expect(response.status).toBe(200);
  expect(((await response.json()) as { usage: { cost: number } }).usage.cost).toBe(usage.cost);
  expect(await spine.faults()).toEqual([]);
});

it('takes limits from the next request on', async () => {
  const { key } = await spine.tenant('limited', '1');
  const asked = () => spine.get('/key', { authorization: `Bearer ${key}` });
  expect((await asked()).status).toBe(200);
  expect(await reload('[limits]\nrequests_per_minute = 1\nburst = 0\n')).toMatchObject({
    options: ['limits.requests_per_minute', 'limits.burst'],
    restart: [],
  });
  expect([(await asked()).status, (await asked()).status]).toContain(429);
  await reload(UNHURRIED);
  expect((await asked()).status).toBe(200);
});

it('names what needs a restart each time, and leaves it', async () => {
  const toml = `${UNHURRIED}messages_max = 5\n[billing]\nfee_bps = 1\n[[chains]]\nnetwork = "eip155:8453"\nrpc_url = "http://127.0.0.1:9"\n`;
  const restart = ['limits.messages_max', 'billing.fee_bps', 'chains eip155:8453'];
  expect((await reload(toml)).restart.toSorted()).toEqual(restart.toSorted());
  expect((await reload(toml)).restart.toSorted()).toEqual(restart.toSorted());
  expect(
    (await call(MODEL, { messages: Array.from({ length: 9 }, () => ({ role: 'user', content: 'x' })) })).status,
  ).toBe(200);
  expect(spine.logs.join('')).toContain('keep their old values until the gateway is restarted');
  await reload(UNHURRIED);
});

it('leaves everything as it was where the file has problems, and says all of them', async () => {
  const before = await reloads();
  spine.writeFile(`${UNHURRIED}${block(3)}\n[server]\nport = "x"\nlog_levle = "warn"\n`);
  const refused = await post();
  expect(refused.status).toBe(400);
  const { error } = (await refused.json()) as { error: { message: string } };
  expect(error.message).toContain('The configuration has 2 problems');
  expect(error.message).toMatch(/spine\.toml:\d+ {2}server\.port/);
  expect(error.message).toContain('did you mean "log_level"?');
  expect((await call(NAME)).status).toBe(404);
  expect((await call(MODEL)).status).toBe(200);
  const line = spine.logs.findLast((one) => one.includes('was not reloaded'));
  expect(line).toContain('the old one stays in use');
  expect(await reloads()).toEqual({ ...before, refused: (before['refused'] ?? 0) + 1 });
});

it('masks the keys of new upstreams in the log', async () => {
  const key = 'sk-new-canary-0123456789';
  await reload(UNHURRIED + block(3).replace('"std::env::TEST_UPSTREAM_KEY"', `"${key}"`));
  spine.app.logger.info({ told: `with ${key}` }, 'something');
  expect(spine.logs.at(-1)).toContain('something');
  expect(spine.logs.join('')).not.toContain(key);
  await reload(UNHURRIED);
});

it('is for the admin key', async () => {
  const refused = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}` },
  });
  expect(refused.status).toBe(401);
});
