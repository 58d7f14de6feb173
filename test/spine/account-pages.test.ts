import { afterEach, describe, expect, test } from 'vitest';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What an account sees of itself: balance, credits, keys, and the record of each call.

const spine = spineOfFile(() => ({ toml: `${UNHURRIED}\n[billing]\nfee_bps = 250`, credit: '12.34' }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const json = async (path: string, headers: Record<string, string> = {}) => {
  const response = await spine.get(path, headers);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown> & { data: Record<string, unknown> };
};
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const send = (method: string, path: string, body?: unknown, key = spine.key) =>
  fetch(`${spine.url}${path}`, {
    method,
    headers: { ...bearer(key), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

test('balance and credits agree with what calls cost', async () => {
  expect(await json('/session/balance')).toEqual({
    caip_account_id: 'tollgate:local:tester',
    balance_micro_usdc: 12_340_000,
    balance_usd: '12.34',
    locked_micro_usdc: 0,
  });
  expect(await json('/credits')).toEqual({ data: { total_credits: 12.34, total_usage: 0 } });
  let spent = 0;
  for (let i = 1; i <= 3; i++) {
    const response = await spine.post('/chat/completions', ask(`hello !tokens:${i}`));
    spent += ((await response.json()) as { usage: { cost: number } }).usage.cost * 1e6;
  }
  expect(await json('/session/balance')).toMatchObject({ balance_micro_usdc: 12_340_000 - spent });
  expect(await json('/credits')).toEqual({ data: { total_credits: 12.34, total_usage: spent / 1e6 } });
});

test('what a running call has locked is not in the balance', async () => {
  const before = (await json('/session/balance'))['balance_micro_usdc'] as number;
  const open = Promise.withResolvers<void>();
  spine.provider.hold(open.promise);
  const seen = spine.provider.log.length;
  const call = spine.post('/chat/completions', ask('hello !tokens:1'));
  while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
  expect((await json('/session/balance'))['balance_micro_usdc']).toBeLessThan(before - 100);
  open.resolve();
  spine.provider.hold(null);
  await (await call).text();
  expect((await json('/session/balance'))['balance_micro_usdc']).toBe(
    before - spine.provider.log.at(-1)!.promptTokens - 2,
  );
});

describe('generation', () => {
  test('a settled call with its lines: lock, settle, refund', async () => {
    const response = await spine.post('/chat/completions', ask('hello !tokens:9'), { 'x-request-id': 'mine-9' });
    await response.text();
    const call = spine.provider.log.at(-1)!;
    const cost = call.promptTokens + 18;
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    expect(generation).toMatchObject({
      object: 'generation',
      state: 'settled',
      account: 'tollgate:local:tester',
      primitive: 'model',
      model: 'test/model',
      provider_name: 'Test',
      request_id: 'mine-9',
      streamed: false,
      usage: cost / 1e6,
      usage_details: { prompt: call.promptTokens, completion: 9 },
      tokens_prompt: call.promptTokens,
      tokens_completion: 9,
      total_cost: cost / 1e6,
      cost_micro_usdc: cost,
      shortfall_micro_usdc: 0,
      estimated: false,
      cancelled: false,
      flags: [],
    });
    // 2.5 % of it, rounded up or down by the call's id.
    const fee = (cost * 250) / 10_000;
    expect([Math.floor(fee), Math.ceil(fee)]).toContain(generation.fee_micro_usdc);
    const amounts = Object.fromEntries(
      generation.entries.map(({ type, amount_micro_usdc }) => [type, amount_micro_usdc]),
    );
    expect(Object.keys(amounts)).toEqual(['lock', 'settle', 'refund']);
    expect(amounts['settle']).toBe(cost);
    expect(amounts['lock']! - amounts['settle']!).toBe(amounts['refund']);
  });

  test('a running call is held, a failed one is released', async () => {
    const known = await spine.locks();
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    spine.provider.instruct({ status: 400 });
    const call = spine.post('/chat/completions', ask('hello'));
    let id: string | undefined;
    while (id === undefined) id = (await spine.locks()).find((one) => !known.includes(one));
    expect(await spine.generation(id)).toMatchObject({ state: 'held', cost_micro_usdc: 0 });
    open.resolve();
    spine.provider.hold(null);
    expect((await call).status).toBe(400);
    const generation = await spine.generation(id);
    expect(generation).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
    expect(generation.entries.map(({ type }) => type)).toEqual(['lock', 'refund']);
  });

  test.each([
    ['', 400],
    ['?id=', 400],
    ['?id=gen-nowhere', 404],
    [`?id=${'x'.repeat(128)}`, 404],
    [`?id=${'x'.repeat(129)}`, 400],
    ["?id=' OR 1=1 --", 404],
    ['?id=a&id=b', 400],
    ['?id=%00', 404],
  ])('%s is %i', async (query, status) => {
    const response = await spine.get(`/generation${query}`);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { param: 'id', code: status } });
  });
});

describe('keys', () => {
  test('the life of a key: made, shown, listed, changed, stopped, deleted', async () => {
    const made = await send('POST', '/keys', {
      name: 'ci',
      limit: 1.5,
      limit_reset: 'weekly',
      expires_at: '2099-01-31T12:00:00Z',
      allowed_services: ['test/model'],
    });
    expect(made.status).toBe(201);
    const { key, data } = (await made.json()) as { key: string; data: Record<string, unknown> & { hash: string } };
    expect(key).toMatch(/^svc-sk-v2-[1-9A-HJ-NP-Za-km-z]+$/);
    expect(data).toMatchObject({
      name: 'ci',
      label: 'ci',
      disabled: false,
      limit: 1.5,
      limit_remaining: 1.5,
      limit_reset: 'weekly',
      usage: 0,
      expires_at: '2099-01-31T12:00:00.000Z',
      allowed_services: ['test/model'],
      development: false,
    });
    expect(data.hash).toMatch(/^[0-9a-f]{64}$/);

    const call = await spine.post('/chat/completions', ask('hello !tokens:5'), bearer(key));
    const { usage } = (await call.json()) as { usage: { cost: number } };
    expect((await json('/key', bearer(key))).data).toMatchObject({
      hash: data.hash,
      usage: usage.cost,
      limit_remaining: 1.5 - usage.cost,
    });

    const { data: listed } = (await json('/keys')) as unknown as { data: { hash: string }[] };
    expect(listed.map(({ hash }) => hash)).toContain(data.hash);
    expect(JSON.stringify(listed)).not.toContain(key);

    const changed = await send('PATCH', `/keys/${data.hash}`, {
      name: 'ci-2',
      limit: null,
      expires_at: null,
      allowed_services: null,
    });
    expect(await changed.json()).toMatchObject({
      data: {
        name: 'ci-2',
        limit: null,
        limit_remaining: null,
        expires_at: null,
        allowed_services: null,
        limit_reset: 'weekly',
      },
    });

    expect((await send('PATCH', `/keys/${data.hash}`, { disabled: true })).status).toBe(200);
    expect((await spine.get('/key', bearer(key))).status).toBe(401);
    expect((await send('PATCH', `/keys/${data.hash}`, { disabled: false })).status).toBe(200);
    expect((await spine.get('/key', bearer(key))).status).toBe(200);

    const gone = await send('DELETE', `/keys/${data.hash}`);
    expect(await gone.json()).toEqual({ deleted: true, data: { hash: data.hash, deleted: true } });
    expect((await spine.get('/key', bearer(key))).status).toBe(401);
    expect((await send('DELETE', `/keys/${data.hash}`)).status).toBe(404);
    expect((await send('PATCH', `/keys/${data.hash}`, { name: 'x' })).status).toBe(404);
  });

  test('a key is stored as a hash only, and shown in no log', async () => {
    const { key } = (await (await send('POST', '/keys', {})).json()) as { key: string };
    expect((await spine.get('/key', bearer(key))).status).toBe(200);
    const rows = await spine.app.database.query({ name: 'test/all-keys', text: 'SELECT * FROM api_keys' });
    const secret = key.slice('svc-sk-v2-'.length);
    expect(
      JSON.stringify(rows, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
    ).not.toContain(secret);
    expect(spine.logs.join('')).not.toContain(secret);
  });

  test('without options it is a plain key, and without a body it is refused', async () => {
    expect((await send('POST', '/keys')).status).toBe(400);
    const response = await send('POST', '/keys', {});
    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({ data: { limit: null, expires_at: null, allowed_services: null } });
  });

  test.each([
    [{ limit: -1 }, 'limit'],
    [{ limit: '5' }, 'limit'],
    [{ limit: 0.0000001 }, 'limit'],
    [{ limit: 1e30 }, 'limit'],
    [{ limit_reset: 'hourly' }, 'limit_reset'],
    [{ expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
    [{ expires_at: 'tomorrow' }, 'expires_at'],
    [{ expires_at: 1_900_000_000 }, 'expires_at'],
    [{ allowed_services: 'test/model' }, 'allowed_services'],
    [{ allowed_services: [] }, 'allowed_services'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(129) }, 'name'],
    [{ name: 7 }, 'name'],
  ])('%j is refused', async (body, param) => {
    const response = await send('POST', '/keys', body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { param: string } };
    expect(error).toMatchObject({ type: 'invalid_request', code: 400 });
    expect(error.param).toBe(param);
  });

  test('a limited key cannot loosen itself, nor make others', async () => {
    const { key, hash } = await spine.tenant('tester', '0', { limit: 1_000_000n });
    for (const response of [
      await send('POST', '/keys', {}, key),
      await send('PATCH', `/keys/${hash}`, { limit: null }, key),
    ]) {
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { type: 'permission_denied' } });
    }
    // It may see itself, and end itself.
    expect((await json('/key', bearer(key))).data).toMatchObject({ limit: 1 });
    expect((await send('DELETE', `/keys/${hash}`, undefined, key)).status).toBe(200);
  });

  test('/key tells the rate', async () => {
    expect((await json('/key')).data).toMatchObject({
      rate_limit: { requests: 1_000_000, tokens: expect.any(Number) as number },
    });
  });
});
