import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { earningsOf, OPERATOR_TREASURY } from '#billing';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

const REASON = 'the answer was cut';

describe.each(ENGINES)('a refund of a call by the operator, on %s', (engine) => {
  let spine: Spine;
  let seller: DialledIn;
  let sellerKey: string;
  /** Public key, known after the first call. */
  let provider = '';
  let drop = async () => {};
  beforeAll(async () => {
    const toml = `${UNHURRIED}\n[billing]\nfee_bps = 1000\n`;
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url, toml });
    } else spine = await startSpine({ toml });
    ({ key: sellerKey } = await spine.tenant('seller', '0'));
    seller = await dialIn({
      router: spine.origin,
      apiKey: sellerKey,
      services: offeredModel({ url: spine.provider.url, prompt: 1_000, completion: 1_000 }),
    });
  });
  afterAll(async () => {
    seller.kill();
    await spine.stop();
    await drop();
  });

  const json = async (response: Response) => ({
    status: response.status,
    body: (await response.json()) as { data: unknown; error?: Record<string, unknown> },
  });
  const admin = async (method: 'GET' | 'POST', path: string, body?: object) =>
    json(
      await fetch(`${spine.origin}/admin/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${spine.adminKey}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const refund = (call: string, body: object) => admin('POST', `/calls/${call}/refund`, body);
  const own = async (path: string, key: string) => json(await spine.get(path, { authorization: `Bearer ${key}` }));
  const earnings = async () => (await spine.app.ledger.balance(earningsOf(provider)))!.available;
  const treasury = async () => (await spine.app.ledger.balance(OPERATOR_TREASURY))!.available;
  /** A charged call at the seller's model, by a new account. */
  const charged = async (name: string) => {
    const { account, key } = await spine.tenant(`${name}-${engine}`, '1');
    const answer = await spine.post('/chat/completions', ask('hello', { model: 'tunnel/model' }), {
      authorization: `Bearer ${key}`,
    });
    expect(answer.status).toBe(200);
    const id = answer.headers.get('x-generation-id')!;
    await answer.text();
    const call = await spine.generation(id, key);
    provider = call.provider!;
    expect(call.fee_micro_usdc).toBeGreaterThan(0);
    expect(call.cost_micro_usdc).toBeGreaterThan(call.fee_micro_usdc);
    return { account, key, id, cost: call.cost_micro_usdc, fee: call.fee_micro_usdc };
  };

  it('gives all of it back once; its provider bears its share and the operator the fee', async () => {
    const { account, key, id, cost, fee } = await charged('whole');
    const [earned, held] = [await earnings(), await treasury()];
    const booked = await refund(id, { reason: `  ${REASON} ` });
    expect(booked).toMatchObject({
      status: 200,
      body: {
        data: {
          call: id,
          amount_micro_usdc: cost,
          from_provider_micro_usdc: cost - fee,
          is_own_provider: false,
          reason: REASON,
          duplicate: false,
        },
      },
    });
    expect(await refund(id, { reason: 'again' })).toMatchObject({
      status: 200,
      body: { data: { amount_micro_usdc: cost, reason: REASON, duplicate: true } },
    });
    expect(await refund(id, { reason: REASON, amount_micro_usdc: 1 })).toMatchObject({
      status: 409,
      body: { error: { param: 'id' } },
    });
    expect(await earnings()).toBe(earned - BigInt(cost - fee));
    expect(await treasury()).toBe(held - BigInt(fee));

    expect(await own('/session/balance', key)).toMatchObject({ body: { balance_micro_usdc: 1_000_000 } });
    expect(await own(`/generation?id=${id}`, key)).toMatchObject({
      body: { data: { cost_micro_usdc: cost, refund: { amount_micro_usdc: cost, reason: REASON } } },
    });
    const listed = { body: { data: [{ id, cost_micro_usdc: cost, refunded_micro_usdc: cost }] } };
    expect(await own('/generations', key)).toMatchObject(listed);
    expect(await admin('GET', `/accounts/${encodeURIComponent(account)}/calls`)).toMatchObject(listed);
    const file = await spine.get('/generations?format=csv', { authorization: `Bearer ${key}` });
    expect(await file.text()).toMatch(new RegExp(`${id}.*,${cost}\r\n$`));
    expect((await own('/movements', key)).body.data).toMatchObject([
      { kind: 'refund', amount_micro_usdc: cost, reason: REASON, reference: id },
      {},
    ]);
    expect((await own('/provider/refunds', sellerKey)).body.data).toMatchObject([
      { call: id, amount_micro_usdc: cost - fee, reason: REASON },
    ]);
    expect(await admin('GET', `/calls/${id}`)).toMatchObject({
      body: { data: { refund: { amount_micro_usdc: cost } } },
    });
    expect(await admin('GET', `/accounts/${encodeURIComponent(account)}`)).toMatchObject({
      body: { data: { movements_micro_usdc: { refunded: cost, other: 1_000_000 }, total_usage_micro_usdc: cost } },
    });
    expect(await spine.faults()).toEqual([]);
  });

  it('gives a part back, and many who ask for it at once get one', async () => {
    const { key, id, cost, fee } = await charged('part');
    let part = Math.floor(cost / 3);
    // The provider's share has a fraction of a micro-dollar, which the operator bears.
    while ((part * (cost - fee)) % cost === 0) part -= 1;
    const earned = await earnings();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => refund(id, { reason: REASON, amount_micro_usdc: part })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(({ body }) => !(body.data as { duplicate: boolean }).duplicate)).toHaveLength(1);
    expect(await earnings()).toBe(earned - BigInt(Math.floor((part * (cost - fee)) / cost)));
    expect(await own('/session/balance', key)).toMatchObject({ body: { balance_micro_usdc: 1_000_000 - cost + part } });
    expect(await spine.faults()).toEqual([]);
  });

  it('is borne by the operator if the earnings do not suffice, until a repetition finds them', async () => {
    const { id, cost, fee } = await charged('poor');
    const left = await earnings();
    const payout = { amount_micro_usdc: Number(left), reference: `all-${engine}` };
    expect((await admin('POST', `/providers/${provider}/payouts`, payout)).status).toBe(200);
    expect(await refund(id, { reason: REASON })).toMatchObject({ body: { data: { from_provider_micro_usdc: 0 } } });
    expect(await earnings()).toBe(0n);
    await admin('POST', `/providers/${provider}/payouts/undo`, { reference: payout.reference, reason: 'a test' });
    expect(await refund(id, { reason: REASON })).toMatchObject({
      body: { data: { from_provider_micro_usdc: cost - fee, duplicate: true } },
    });
    expect(await earnings()).toBe(left - BigInt(cost - fee));
    expect(await spine.faults()).toEqual([]);
  });

  it('is refused for more than the charge, for a call that cost nothing, that runs, or that is unknown', async () => {
    const { key, id, cost } = await charged('refused');
    expect(await refund(id, { reason: REASON, amount_micro_usdc: cost + 1 })).toMatchObject({
      status: 422,
      body: { error: { param: 'amount_micro_usdc' } },
    });
    for (const wrong of [{}, { reason: ' ' }, { reason: REASON, amount_usd: 0 }, { reason: REASON, all: true }])
      expect((await refund(id, wrong)).status, JSON.stringify(wrong)).toBe(400);
    expect((await refund('gen-unknown', { reason: REASON })).status).toBe(404);

    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = spine.post('/chat/completions', ask('hi', { model: 'tunnel/model' }), {
      authorization: `Bearer ${key}`,
    });
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    const held = (await spine.locks()).filter((lock) => lock !== id);
    const states = await Promise.all(held.map((lock) => spine.app.ledger.find(lock)));
    const runs = states.find((lock) => lock?.state === 'held')!;
    expect(await refund(runs.id, { reason: REASON })).toMatchObject({ status: 422, body: { error: { param: 'id' } } });
    open.resolve();
    spine.provider.hold(null);
    await (await running).text();

    const before = new Set(await spine.locks());
    const failed = await spine.post('/chat/completions', ask('!status:500', { model: 'tunnel/model' }), {
      authorization: `Bearer ${key}`,
    });
    await failed.text();
    const [free] = (await spine.locks()).filter((lock) => !before.has(lock));
    expect(await refund(free!, { reason: REASON })).toMatchObject({
      status: 422,
      body: { error: { message: 'Nothing was charged for this call' } },
    });
    expect(await spine.faults()).toEqual([]);
  });

  it('is found by the audit if it does not fit its call', async () => {
    const { id, cost } = await charged('audited');
    await spine.app.ledger.transfer({
      id: `refund:${id}`,
      from: OPERATOR_TREASURY,
      to: `escrow:${spine.account}`,
      amount: BigInt(cost) + 1n,
      memo: '',
    });
    expect(await spine.faults()).toMatchObject([{ name: 'refunds', detail: expect.stringContaining(id) as string }]);
  });
});
