import { afterEach, expect, test } from 'vitest';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// 402 and 424: what a caller without enough money is told, before anybody does work for it.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
  expect(spine.provider.log).toHaveLength(0);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

test.each([false, true])('funded but too low: 402 that says the estimate (stream: %s)', async (stream) => {
  const { key } = await spine.tenant(`poor-${stream}`, '0.000001');
  // 4,096 tokens at 2 USD per 1M, and the bound of a prompt of 993 bytes and its role: 997 + 64 + 16 at 1 USD per 1M.
  const response = await spine.post(
    '/chat/completions',
    ask('x'.repeat(993), { max_tokens: 4096, stream }),
    bearer(key),
  );
  expect(response.status).toBe(402);
  expect(response.headers.get('content-type')).toContain('application/json');
  const body = (await response.json()) as { error: { message: string } };
  // Clients of x402 read these first; without a chain there is nothing to pay with.
  expect(body).toMatchObject({ x402Version: 2, accepts: [] });
  expect(response.headers.get('payment-required')).toBeNull();
  expect(body.error).toMatchObject({ type: 'insufficient_balance', code: 402 });
  // Clients match its beginning. Without a chain, only the operator can help.
  expect(body.error.message).toBe(
    `Insufficient balance for estimated cost: 0.00${2 * 4096 + 997 + 64 + 16} USDC. 0.000001 USDC are available. Ask the operator of this gateway to credit the account, then send the request again. A lower max_tokens, or a cheaper model, needs less`,
  );
  expect(await (await spine.get('/session/balance', bearer(key))).json()).toMatchObject({
    balance_micro_usdc: 1,
    balance_usd: '0.000001',
  });
});

test('the refusal is the same on other wires', async () => {
  const { key } = await spine.tenant('poor-on-wires', '0.000001');
  const poor =
    /^Insufficient balance for estimated cost: 0\.\d+ USDC\. 0\.000001 USDC are available\. Ask the operator/;
  for (const path of ['/chat/completions', '/messages', '/responses']) {
    const { messages, ...fields } = ask('hello', { max_tokens: 4096 });
    const body = path === '/responses' ? { model: fields.model, input: 'hello' } : { ...fields, messages };
    const response = await spine.post(path, body, bearer(key));
    expect([path, response.status]).toEqual([path, 402]);
    expect(((await response.json()) as { error: { message: string } }).error.message).toMatch(poor);
  }
});

test('never funded: 424 on a call, and a balance of 0 is no error', async () => {
  const { key } = await spine.tenant('unfunded', '0');
  const response = await spine.post('/chat/completions', ask('hello'), bearer(key));
  expect(response.status).toBe(424);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(error).toMatchObject({
    type: 'escrow_not_setup',
    code: 424,
    message: expect.stringContaining('Ask the operator for credit') as string,
  });
  expect(error.message).toMatch(/^Escrow account not set up: .*never funded\. Ask the operator for credit/);
  const balance = await spine.get('/session/balance', bearer(key));
  expect(balance.status).toBe(200);
  expect(await balance.json()).toEqual({
    caip_account_id: 'tollgate:local:unfunded',
    balance_micro_usdc: 0,
    balance_usd: '0',
    locked_micro_usdc: 0,
  });
});

test('spent to nothing: 402, not 424', async () => {
  const { key, account } = await spine.tenant('spent', '0.000005');
  await spine.app.ledger.transfer({
    id: 'take-it-back',
    from: `escrow:${account}`,
    to: 'treasury:operator',
    amount: 5n,
    memo: '',
  });
  const response = await spine.post('/chat/completions', ask('hello'), bearer(key));
  expect(response.status).toBe(402);
});

test('an unknown model, and a wrong request, are said before money is', async () => {
  const { key } = await spine.tenant('poor-and-wrong', '0');
  expect((await spine.post('/chat/completions', ask('hello', { model: 'test/nowhere' }), bearer(key))).status).toBe(
    404,
  );
  expect((await spine.post('/chat/completions', ask('hello', { temperature: 3 }), bearer(key))).status).toBe(400);
});

test('the price of a call that is priced is at least one micro-USD, also in its lock', async () => {
  const { key } = await spine.tenant('one', '0.000001');
  const response = await spine.post('/chat/completions', ask('hello'), bearer(key));
  expect(response.status).toBe(402);
});
