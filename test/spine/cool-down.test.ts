import { afterEach, expect, test } from 'vitest';
import { startProvider } from '../support/provider.ts';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// An offer that failed rests for a while; calls go elsewhere, and it comes back by one call that tries it.

let skew = 0;

const second = ofFile(startProvider, (one) => one.stop());
const spine = spineOfFile(() => ({
  now: () => Date.now() + skew,
  toml: `${UNHURRIED}
[upstream]
cooldown_ms = 30000
${modelBlock({ provider: 'Second', url: second.url, prompt: 100, completion: 200 })}
${modelBlock({ name: 'test/alone', provider: 'Alone', url: '{provider}' })}`,
}));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const servedBy = async (more: object = {}) => {
  const response = await spine.post('/chat/completions', ask('hello', more));
  await response.text();
  return `${response.status} ${response.headers.get('x-provider')}`;
};
const statusOf = async (provider: string) => {
  const { data } = (await (await spine.get('/models/test/model/endpoints')).json()) as {
    data: { endpoints: { provider_name: string; health: string }[] };
  };
  return data.endpoints.find((endpoint) => endpoint.provider_name === provider)!.health;
};

test('a failed provider is passed over until its cool-down is over, then tried by one call, and is back when that succeeds', async () => {
  spine.provider.instruct({ status: 500 });
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Second');
  const seen = spine.provider.log.length;
  // Even where it is asked for first, and a hundred times cheaper.
  for (let i = 0; i < 10; i++) expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Second');
  expect(spine.provider.log.length).toBe(seen);

  skew += 31_000;
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Test');
});

test('a provider rests for the account that it failed; for all, and in its public state, when it failed three accounts', async () => {
  skew += 400_000;
  const tenants = [];
  for (const name of ['one', 'two', 'three', 'four'])
    tenants.push({ authorization: `Bearer ${(await spine.tenant(name, '1')).key}` });
  const first = { provider: { order: ['Test'] } };
  const servedTo = async (headers: Record<string, string>, content = 'hello') => {
    const response = await spine.post('/chat/completions', ask(content, first), headers);
    await response.text();
    return `${response.status} ${response.headers.get('x-provider')}`;
  };
  for (const tenant of tenants.slice(0, 2)) {
    spine.provider.instruct({ status: 500 });
    expect(await servedTo(tenant)).toBe('200 Second');
  }
  expect(await statusOf('Test')).toBe('healthy');
  spine.provider.instruct({ status: 500 });
  expect(await servedTo(tenants[2]!)).toBe('200 Second');
  expect(await statusOf('Test')).toBe('cooling_down');
  expect(await servedTo(tenants[3]!)).toBe('200 Second');

  skew += 31_000;
  expect(await servedTo(tenants[3]!)).toBe('200 Test');
  expect(await statusOf('Test')).toBe('healthy');
});

test('a request that fails at two providers speaks against neither of them', async () => {
  skew += 400_000;
  for (const name of ['five', 'six', 'seven']) {
    const headers = { authorization: `Bearer ${(await spine.tenant(name, '1')).key}` };
    expect((await spine.post('/chat/completions', ask('poison !status:500'), headers)).status).toBe(500);
  }
  expect([await statusOf('Test'), await statusOf('Second')]).toEqual(['healthy', 'healthy']);
});

test('a provider that is still down when it is tried again rests again', async () => {
  skew += 100_000;
  spine.provider.instruct({ status: 500 }, { status: 500 });
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Second');
  skew += 31_000;
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Second');
  const seen = spine.provider.log.length;
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Second');
  expect(spine.provider.log.length).toBe(seen);
  skew += 31_000;
  expect(await servedBy({ provider: { order: ['Test'] } })).toBe('200 Test');
});

test('when no provider is healthy the answer is 503 with Retry-After, without asking anybody, and nothing is locked', async () => {
  skew += 100_000;
  const balance = await spine.balance();
  for (let failures = 0; failures < 10; failures++) {
    const response = await spine.post('/chat/completions', ask('hello !status:500', { model: 'test/alone' }));
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable', code: 500 } });
  }
  const seen = spine.provider.log.length;
  const locks = (await spine.locks()).length;
  const response = await spine.post('/chat/completions', ask('hello', { model: 'test/alone' }));
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable', code: 503 } });
  const retryAfter = Number(response.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  expect(retryAfter).toBeLessThanOrEqual(30);
  expect(spine.provider.log.length).toBe(seen);
  expect((await spine.locks()).length).toBe(locks);

  skew += retryAfter * 1000;
  expect(await servedBy({ model: 'test/alone' })).toBe('200 Alone');
  expect(await spine.balance()).not.toEqual(balance);
});

test('who cannot pay, or asks for what is not there, does not use up the one try at a provider that has cooled down', async () => {
  skew += 400_000;
  for (let failures = 0; failures < 10; failures++)
    await (await spine.post('/chat/completions', ask('hello !status:500', { model: 'test/alone' }))).text();
  expect(await servedBy({ model: 'test/alone' })).toBe('503 null');
  skew += 31_000;
  const poor = { authorization: `Bearer ${(await spine.tenant('poor', '0.000001')).key}` };
  const statuses = [];
  for (const [more, headers] of [
    [{}, poor],
    [{ messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, {}],
    [{ provider: { only: ['nobody'] } }, {}],
  ] as const)
    statuses.push(
      (await spine.post('/chat/completions', ask('hello', { model: 'test/alone', ...more }), headers)).status,
    );
  expect(statuses).toEqual([402, 422, 404]);
  expect(await servedBy({ model: 'test/alone' })).toBe('200 Alone');
});

test('providers say how they stand', async () => {
  const { data } = (await (await spine.get('/providers')).json()) as {
    data: { name: string; status: string; uptime: number }[];
  };
  expect(data.map(({ name }) => name)).toEqual(['Alone', 'Second', 'Test']);
  expect(data.find(({ name }) => name === 'Second')!.uptime).toBe(1);
  expect(data.find(({ name }) => name === 'Test')!.uptime).toBeLessThan(1);
});
