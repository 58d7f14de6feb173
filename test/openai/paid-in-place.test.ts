import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { formatUsd } from '#billing/amounts';
import { createLimitsStore } from '#accounts';
import {
  accountOf,
  createPaperChain,
  fromHeader,
  PAPER_LEAST,
  payWith,
  toHeader,
  type PaperPayment,
} from '../support/paper-chain.ts';
import { startRawMcp } from '../support/raw-mcp.ts';
import { ask, events, modelBlock, MODEL } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// What the chat route does with a payment. The chain is one on paper; payments on real ones are tested where these are.

const KEEP_ALIVE_MS = 10;
const chain = createPaperChain();
const tools = ofFile(
  () => startRawMcp(() => '{"resultType":"complete","content":[]}', ['{"name":"any","inputSchema":{"type":"object"}}']),
  (one) => one.close(),
);
const spine = spineOfFile(() => {
  const dear = modelBlock({ name: 'test/dear', provider: 'Dear', url: '{provider}', completion: 10_000 });
  const tool = `\n[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
  const limits = '[limits]\nrequests_per_minute = 1000000\nanonymous_requests_per_minute = 1000000\n';
  return { toml: limits + dear + tool, payments: chain.payments, keepAliveMs: KEEP_ALIVE_MS };
});
beforeAll(() => {
  chain.credit(spine.app.ledger);
});
afterEach(async () => {
  spine.provider.hold(null);
  expect(await spine.faults()).toEqual([]);
});

const post = (body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
const pay = (payment: PaperPayment) => ({ 'payment-signature': toHeader(payWith(payment)) });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const availableOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? null;
const asked = () => spine.provider.log.length;
const receiptOf = (response: Response) => fromHeader(response.headers.get('payment-response'));

/** The terms of a 402, which stand in the header and in the body. */
async function termsOf(response: Response) {
  expect(response.status).toBe(402);
  const header = fromHeader(response.headers.get('payment-required'));
  const { error, ...body } = (await response.json()) as Record<string, unknown> & { error: Record<string, unknown> };
  expect(header).toEqual({ ...body, error: error['message'] });
  return {
    error,
    accepts: header['accepts'] as { amount: string }[],
    resource: header['resource'] as Record<string, string>,
  };
}

test('a wallet without an account is told its terms, pays, and is answered from what it paid', async () => {
  const before = asked();
  const body = ask('hello');
  const { error, accepts, resource } = await termsOf(await post(body));
  expect(error).toMatchObject({
    type: 'insufficient_balance',
    code: 402,
    message: expect.stringMatching(/estimated cost: 0\.\d+ USDC/) as string,
  });
  expect(accepts.map(({ amount }) => amount)).toEqual([String(PAPER_LEAST)]);
  expect(resource).toMatchObject({ url: `${spine.url}/chat/completions`, mimeType: 'application/json' });
  expect(resource['description']).toContain(MODEL);
  expect(asked()).toBe(before);

  const paid = await post(body, pay({ wallet: 'alice', nonce: 'first' }));
  expect(paid.status).toBe(200);
  const receipt = {
    success: true,
    transaction: 'tx-first',
    network: 'paper:1',
    payer: 'alice',
    amount: String(PAPER_LEAST),
  };
  expect(receiptOf(paid)).toEqual(receipt);
  const { usage } = (await paid.json()) as { usage: { cost: number } };
  expect(await availableOf(accountOf('alice'))).toBe(PAPER_LEAST - BigInt(Math.round(usage.cost * 1e6)));
  expect(asked()).toBe(before + 1);
});

test('the terms are those of the request: what it may cost, where that is more than the least, and the same each time', async () => {
  const dear = ask('hello', { model: 'test/dear', max_tokens: 100 });
  const { accepts } = await termsOf(await post(dear));
  expect(BigInt(accepts[0]!.amount)).toBeGreaterThan(1_000_000n);
  expect((await termsOf(await post(dear))).accepts).toEqual(accepts);
  // Exactly as much as was asked is enough.
  expect((await post(dear, pay({ wallet: 'exact', amount: BigInt(accepts[0]!.amount) }))).status).toBe(200);
  const { error } = await termsOf(await post(dear, pay({ wallet: 'short', amount: BigInt(accepts[0]!.amount) - 1n })));
  expect(error['type']).toBe('insufficient_payment');
  expect(await availableOf(accountOf('short'))).toBeNull();
});

test('a stream tells of the payment in its head, before the provider has said a word', async () => {
  spine.provider.instruct({ stallAt: 1, stallMs: 200 });
  const response = await post(ask('hello', { stream: true }), pay({ wallet: 'bob', nonce: 'streamed' }));
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/event-stream/);
  expect(receiptOf(response)).toMatchObject({ transaction: 'tx-streamed', payer: 'bob' });
  expect(events(await response.text()).at(-1)).toBe('[DONE]');
});

test.each([false, true])(
  'the same payment with the same request is one run, and its stored answer (stream: %s)',
  async (stream) => {
    const before = asked();
    const body = ask(`once ${stream}`, { stream });
    const payment = pay({ wallet: `once-${stream}`, nonce: `once-${stream}` });
    const first = await post(body, payment);
    const text = await first.text();
    const left = await availableOf(accountOf(`once-${stream}`));
    const again = await post(body, payment);
    expect({ status: again.status, text: await again.text() }).toEqual({ status: 200, text });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(receiptOf(again)).toEqual(receiptOf(first));
    expect(asked()).toBe(before + 1);
    expect(await availableOf(accountOf(`once-${stream}`))).toBe(left);

    const { error } = await termsOf(await post(ask('something else', { stream }), payment));
    expect(error['type']).toBe('payment_verification_failed');
    expect(asked()).toBe(before + 1);
  },
);

test('sent many times at once, a payment is credited once and runs once', async () => {
  const before = asked();
  const payment = pay({ wallet: 'crowd', nonce: 'crowd' });
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async () => (await post(ask('crowd'), payment)).status),
  );
  expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
  expect(statuses).toContain(200);
  expect(asked()).toBe(before + 1);
  expect((await availableOf(accountOf('crowd')))! < PAPER_LEAST).toBe(true);
});

test('a payment that is not known to be settled is 202, and the same request asks again', async () => {
  const before = asked();
  chain.unsettled.add('slow');
  const payment = pay({ wallet: 'slow', nonce: 'slow' });
  for (let round = 0; round < 2; round += 1) {
    const response = await post(ask('slow', { stream: true }), payment);
    expect(response.status).toBe(202);
    expect(response.headers.get('retry-after')).toBe('2');
    expect(response.headers.get('payment-required')).toBeNull();
    expect(await response.json()).toMatchObject({ error: { type: 'payment_pending', code: 202 } });
  }
  expect(asked()).toBe(before);
  chain.unsettled.delete('slow');
  const done = await post(ask('slow', { stream: true }), payment);
  expect(done.status).toBe(200);
  expect(receiptOf(done)).toMatchObject({ transaction: 'tx-slow' });
  await done.text();
});

test('a call that fails after its payment says that it was taken, and its retry runs from the balance', async () => {
  // Its only provider is asked twice.
  spine.provider.instruct({ status: 500 }, { status: 500 });
  const payment = pay({ wallet: 'unlucky', nonce: 'unlucky' });
  const failed = await post(ask('unlucky'), payment);
  expect(failed.status).toBe(500);
  expect(receiptOf(failed)).toMatchObject({ transaction: 'tx-unlucky' });
  await failed.text();
  await spine.quiet();
  expect(await availableOf(accountOf('unlucky'))).toBe(PAPER_LEAST);
  const retried = await post(ask('unlucky'), payment);
  expect(retried.status).toBe(200);
  expect(receiptOf(retried)).toMatchObject({ transaction: 'tx-unlucky' });
  await retried.text();
  expect(chain.taken.filter((nonce) => nonce === 'unlucky')).toHaveLength(2);
});

test.each([
  ['forged', 'payment_verification_failed'],
  ['expired', 'payment_expired'],
] as const)('a payment that is %s is refused with the terms, and nothing is credited', async (fault, type) => {
  const before = asked();
  const { error, accepts } = await termsOf(await post(ask('hello'), pay({ wallet: fault, fault })));
  expect(error['type']).toBe(type);
  expect(accepts).toHaveLength(1);
  expect(asked()).toBe(before);
  expect(await availableOf(accountOf(fault))).toBeNull();
});

test('what is refused for another reason is never paid', async () => {
  const taken = chain.taken.length;
  for (const [body, status] of [
    [{ model: MODEL }, 400],
    ['{', 400],
    [ask('hello', { model: 'no/such' }), 404],
    [ask('hello', { messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }), 422],
  ] as const)
    expect((await post(body, pay({ wallet: 'careful' }))).status).toBe(status);
  expect((await post(ask('hello'), { 'payment-signature': 'no base64!' })).status).toBe(400);
  expect(chain.taken.length).toBe(taken);
});

test('an account with a key pays only where its balance does not reach, and what is missing', async () => {
  const { key, account } = await spine.tenant('topped-up', '0.01');
  const taken = chain.taken.length;
  const enough = await post(ask('hello'), { ...bearer(key), ...pay({ wallet: 'anyone' }) });
  expect(enough.status).toBe(200);
  expect(enough.headers.get('payment-response')).toBeNull();
  expect(chain.taken.length).toBe(taken);
  await enough.text();

  const dear = ask('hello', { model: 'test/dear', max_tokens: 100 });
  const { accepts } = await termsOf(await post(dear, bearer(key)));
  const before = (await availableOf(account))!;
  const { key: without } = await spine.tenant('without', '0');
  const whole = await termsOf(await post(dear, bearer(without)));
  expect(BigInt(accepts[0]!.amount)).toBe(BigInt(whole.accepts[0]!.amount) - before);
  const paid = await post(dear, {
    ...bearer(key),
    ...pay({ wallet: 'anyone', amount: BigInt(accepts[0]!.amount), nonce: 'for-key' }),
  });
  expect(paid.status).toBe(200);
  expect(receiptOf(paid)).toMatchObject({ transaction: 'tx-for-key', amount: accepts[0]!.amount });
  const { usage } = (await paid.json()) as { usage: { cost: number } };
  expect(await availableOf(account)).toBe(before + BigInt(accepts[0]!.amount) - BigInt(Math.round(usage.cost * 1e6)));
  expect(await availableOf(accountOf('anyone'))).toBeNull();
});

test('an account that was never funded is told terms, and a limit of a key is none that a payment would lift', async () => {
  const { key } = await spine.tenant('empty', '0');
  expect((await termsOf(await post(ask('hello'), bearer(key)))).error['type']).toBe('insufficient_balance');
  const limited = await spine.tenant('limited', '10', { limit: 1n, limitReset: null });
  const taken = chain.taken.length;
  const refused = await post(ask('hello'), { ...bearer(limited.key), ...pay({ wallet: 'limited' }) });
  expect(refused.status).toBe(402);
  expect(refused.headers.get('payment-required')).toBeNull();
  expect(chain.taken.length).toBe(taken);
});

test('a payment into a full budget of the wallet is not taken', async () => {
  const limits = createLimitsStore(spine.app.database, { now: Date.now });
  const capped = accountOf('capped');
  const limit = (most: bigint) =>
    limits.change(capped, 'operator', {
      budgets: [{ limit: most, limitReset: null, limitSoft: false, notify: [] }],
    });
  const payFor = (body: object) => post(body, pay({ wallet: 'capped' }));
  await limit(1n);
  const before = { taken: chain.taken.length, asked: asked() };
  for (const body of [ask('hello'), ask('hello', { tools: [{ type: 'mcp', service: 'kit' }], max_cost: '0.05' })]) {
    const refused = await payFor(body);
    expect([refused.status, refused.headers.get('payment-required')]).toEqual([402, null]);
    expect(await refused.json()).toMatchObject({
      error: { type: 'insufficient_balance' },
      budget: { of: 'operator', limit_usd: '0.000001' },
    });
  }
  expect({ taken: chain.taken.length, asked: asked() }).toEqual(before);
  expect(await availableOf(capped)).toBeNull();

  // A limit that another gateway has raised holds here within a second.
  await limit(100_000n);
  await expect.poll(async () => (await payFor(ask('hello'))).status).toBe(200);

  // One that would have room, had nothing been spent in its period before it was set.
  await spine.quiet();
  const spent = await spine.app.ledger.spentOf(`operator:${capped}`);
  const locks = await Promise.all((await spine.locks()).map((id) => spine.app.ledger.find(id)));
  const { amount } = locks.find((lock) => lock?.account === capped)!;
  const budget = { limit: amount + spent - 1n, limitReset: 'monthly', limitSoft: false } as const;
  await limits.change(capped, 'operator', { budgets: [{ ...budget, notify: [] }] });
  let nonces = 0;
  const payAnew = () => post(ask('hello'), pay({ wallet: 'capped', nonce: `capped-${(nonces += 1)}` }));
  await expect.poll(async () => (await payAnew()).status).toBe(402);
  const taken = chain.taken.length;
  const refused = await payAnew();
  expect(await refused.json()).toMatchObject({ budget: { of: 'operator', limit_usd: formatUsd(budget.limit) } });
  expect(chain.taken.length).toBe(taken);
});

test('a run of a model with tools is paid for as a whole', async () => {
  const body = ask('hello', { tools: [{ type: 'mcp', service: 'kit' }], max_cost: '0.05' });
  const { accepts } = await termsOf(await post(body));
  const paid = await post(body, pay({ wallet: 'runner', amount: BigInt(accepts[0]!.amount), nonce: 'run' }));
  expect(paid.status, await paid.clone().text()).toBe(200);
  expect(receiptOf(paid)).toMatchObject({ transaction: 'tx-run' });
  expect(chain.taken.filter((nonce) => nonce === 'run')).toHaveLength(1);
});

test("a tool that is asked as a model is paid for in place, and a client's own idempotency key is the payer's", async () => {
  const body = ask('{}', { model: 'mcp/kit/any' });
  const payment = { ...pay({ wallet: 'bridge', nonce: 'bridge' }), 'idempotency-key': 'mine' };
  const paid = await post(body, payment);
  expect(paid.status, await paid.clone().text()).toBe(200);
  expect(receiptOf(paid)).toMatchObject({ transaction: 'tx-bridge' });
  expect((await post(body, { 'idempotency-key': 'mine' })).status).toBe(402);
  expect((await post(body, payment)).headers.get('idempotent-replayed')).toBe('true');
  expect(tools.asked.filter(({ method }) => method === 'tools/call')).toHaveLength(1);
});

test('whoever reads a payment on the chain, and knows the request, cannot have it run again under keys of his own', async () => {
  const before = asked();
  const body = ask('guessed');
  const payment = pay({ wallet: 'drained', nonce: 'drained' });
  expect((await post(body, { ...payment, 'idempotency-key': 'mine' })).status).toBe(200);
  const left = await availableOf(accountOf('drained'));
  for (const more of [{}, { 'idempotency-key': 'one' }, { 'idempotency-key': 'two' }]) {
    const { error } = await termsOf(await post(body, { ...payment, ...more }));
    expect(error['type']).toBe('payment_verification_failed');
  }
  expect(asked()).toBe(before + 1);
  expect(await availableOf(accountOf('drained'))).toBe(left);
});

test('a stream that may be slow to begin does not begin before it is paid for', async () => {
  const body = ask('{}', { model: 'mcp/kit/any', stream: true });
  const held = Promise.withResolvers<void>();
  chain.hold(held.promise);
  chain.unsettled.add('settling');
  let answered = false;
  const answer = post(body, pay({ wallet: 'settling', nonce: 'settling' })).finally(() => (answered = true));
  await setTimeout(5 * KEEP_ALIVE_MS);
  expect(answered).toBe(false);
  held.resolve();
  chain.hold(null);
  expect((await answer).status).toBe(202);
});

test('a payment goes to no provider and into no log', async () => {
  const canary = 'paper-canary';
  expect(spine.provider.log.length).toBeGreaterThan(0);
  const seen =
    JSON.stringify(spine.provider.log.map(({ headers, text }) => [headers, text])) + JSON.stringify(tools.asked);
  const encoded = [toHeader(payWith({ wallet: 'alice', nonce: 'first' })).slice(120, 200), canary];
  for (const secret of encoded) {
    expect(seen).not.toContain(secret);
    expect(spine.logs.join('\n')).not.toContain(secret);
  }
  expect(seen).not.toMatch(/payment-signature|x-payment/i);
});
