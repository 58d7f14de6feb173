import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

const REASON = '500 were credited instead of 50';

describe.each(ENGINES)('a debit by the operator, on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  beforeAll(async () => {
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url });
    } else spine = await startSpine();
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
  });

  const admin = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const response = await fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${spine.adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const debit = (account: string, body: object) =>
    admin('POST', `/accounts/${encodeURIComponent(account)}/debit`, body);
  const movements = async (key: string, query = '') => {
    const response = await spine.get(`/movements${query}`, { authorization: `Bearer ${key}` });
    return (await response.json()) as { data: { id: string }[]; next: string | null };
  };

  it('takes a wrong credit back once, and says what was there before and after', async () => {
    await admin('POST', '/accounts', { name: 'too-much' });
    const { account, key } = await spine.tenant('too-much', '0');
    const credited = await admin('POST', `/accounts/${encodeURIComponent(account)}/credit`, {
      amount_usd: 500,
      reference: `wire-${engine}`,
    });
    expect(credited.status).toBe(200);
    const asked = { amount_usd: 450, reason: `  ${REASON} `, reference: `correction-${engine}` };
    const first = await debit(account, asked);
    expect(first).toMatchObject({
      status: 200,
      body: {
        data: {
          account: { id: account, balance_usd: '50' },
          amount_micro_usdc: 450_000_000,
          balance_before_micro_usdc: 500_000_000,
          balance_after_micro_usdc: 50_000_000,
          duplicate: false,
        },
      },
    });
    expect(await debit(account, asked)).toMatchObject({
      body: { data: { duplicate: true, balance_before_micro_usdc: 50_000_000, balance_after_micro_usdc: 50_000_000 } },
    });
    expect(await debit(account, { ...asked, amount_usd: 45 })).toMatchObject({
      status: 409,
      body: {
        error: {
          message: `This reference was already used for another debit: 450 USD from escrow:${account} to treasury:operator`,
          param: 'reference',
        },
      },
    });

    const listed = await movements(key);
    expect(listed).toMatchObject({
      data: [
        { kind: 'debit', amount_micro_usdc: -450_000_000, reason: REASON, reference: `correction-${engine}` },
        { kind: 'credit', amount_micro_usdc: 500_000_000, reason: null, reference: `wire-${engine}` },
      ],
      next: null,
    });
    const newest = await movements(key, '?limit=1');
    expect(newest).toMatchObject({ data: [{ kind: 'debit' }], next: `debit:correction-${engine}` });
    expect(await movements(key, `?limit=1&before=${newest.next}`)).toMatchObject({ data: [{ kind: 'credit' }] });
    const strange = await spine.get(`/movements?before=${newest.next}`, { authorization: `Bearer ${spine.key}` });
    expect(strange.status).toBe(400);

    const credits = await spine.get('/credits', { authorization: `Bearer ${key}` });
    expect(await credits.json()).toEqual({ data: { total_credits: 50, total_usage: 0 } });
    const { body } = await admin('GET', '/audit-log?limit=20');
    const logged = (body['data'] as { path: string; body: unknown; status: number }[]).filter(({ path }) =>
      path.endsWith('/debit'),
    );
    expect(logged).toMatchObject([
      { status: 409 },
      { status: 200 },
      { status: 200, body: expect.stringContaining(REASON) as string },
    ]);
    expect(await spine.faults()).toEqual([]);
  });

  it('never takes what a running call has locked, and names the most that it could take', async () => {
    const { account, key } = await spine.tenant('calling', '1');
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = spine.post('/chat/completions', ask('hi', { max_tokens: 100 }), { authorization: `Bearer ${key}` });
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    const shown = await admin('GET', `/accounts/${encodeURIComponent(account)}`);
    const { balance_micro_usdc: free, locked_micro_usdc: locked } = shown.body['data'] as Record<string, number>;
    expect(locked).toBeGreaterThan(0);
    const refused = await debit(account, { amount_usd: 1, reason: REASON, reference: `all-${engine}` });
    expect(refused).toMatchObject({ status: 422, body: { error: { type: 'unprocessable', param: 'amount_usd' } } });
    const { message } = refused.body['error'] as { message: string };
    expect(message).toBe(
      `At most ${free! / 1e6} USD can be taken from this account. Running calls have locked ${locked! / 1e6} USD more, which cannot be taken until they end`,
    );
    expect(
      await debit(account, { amount_micro_usdc: free, reason: REASON, reference: `rest-${engine}` }),
    ).toMatchObject({ body: { data: { balance_after_micro_usdc: 0 } } });
    open.resolve();
    spine.provider.hold(null);
    expect((await running).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });

  it('needs a reason and a reference, and an account that exists', async () => {
    const { account } = await spine.tenant('asked', '1');
    for (const wrong of [
      { amount_usd: 1, reference: 'r' },
      { amount_usd: 1, reference: 'r', reason: '  ' },
      { amount_usd: 1, reason: REASON },
      { amount_usd: -1, reason: REASON, reference: 'r' },
      { reason: REASON, reference: 'r' },
    ])
      expect((await debit(account, wrong)).status).toBe(400);
    expect((await debit('tollgate:local:nobody', { amount_usd: 1, reason: REASON, reference: 'r' })).status).toBe(404);
    await admin('POST', '/accounts', { name: 'poor' });
    expect(await debit('tollgate:local:poor', { amount_usd: 1, reason: REASON, reference: 'r' })).toMatchObject({
      status: 422,
      body: { error: { message: 'The account has no money that can be taken' } },
    });
    expect(await spine.faults()).toEqual([]);
  });
});
