import { inject, afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { createQuotes } from '#call/compose';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import { accountOf, createPaperChain, payWith, toHeader } from '../support/paper-chain.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { imageBlock, type ImageProvider, json, paintAsAsked, startImageProvider } from './support/image-provider.ts';

// A quote says what images cost, and one call costs that.

interface QuoteAnswer {
  readonly price_usd: number;
  readonly valid: boolean;
  readonly message: string;
  readonly quote_id: string;
  readonly valid_until: string;
}

const IMAGE = {
  b64: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
};
const chain = createPaperChain();
const never = () => Promise.reject(new Error('a sweep asks for nothing'));
const unused = { prices: { remember: never, find: never }, ledger: { find: never }, validMs: 1 };

describe.each(ENGINES)('on %s', (engine) => {
  let provider: ImageProvider;
  let fresh: FreshDatabase | null = null;
  let spine: Spine;
  let late = 0;
  beforeAll(async () => {
    provider = await startImageProvider();
    fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    const { url } = provider;
    spine = await startSpine({
      ...(fresh ? { databaseUrl: fresh.url } : {}),
      payments: chain.payments,
      now: () => Date.now() + late,
      toml:
        `${UNHURRIED}anonymous_requests_per_minute = 1000000\n[upstream]\ncooldown_ms = 1\n` +
        imageBlock({ url, generation: 3 }) +
        imageBlock({
          url,
          name: 'test/tiers',
          params: 'edits = true',
          pricing:
            'resolutions = { "1K" = 0.02, "2K" = 0.08 }\nvariants = { "1K/high" = 0.1 }\nedit = 0.05\ninput_image = 0.003',
        }),
    });
    chain.credit(spine.app.ledger);
  });
  afterAll(async () => {
    await spine.stop();
    await fresh?.drop();
    await provider.close();
  });
  beforeEach(() => {
    provider.answer(paintAsAsked);
  });
  afterEach(async () => expect(await spine.faults()).toEqual([]));

  const ask = (more: object = {}) => ({ model: 'test/tiers', prompt: 'A tollgate', ...more });
  const quoted = async (path: string, body: object, headers: Record<string, string> = {}): Promise<QuoteAnswer> => {
    const response = await spine.post(`${path}/quote`, body, headers);
    const answer = (await response.json()) as QuoteAnswer;
    expect([response.status, answer]).toMatchObject([200, {}]);
    return answer;
  };
  const generate = (body: object, headers: Record<string, string> = {}) => spine.post('/image/generate', body, headers);
  const errorOf = async (response: Response) => ({
    status: response.status,
    ...((await response.json()) as { error: { code: string; param: string | null; message: string } }).error,
  });
  const costOf = async (response: Response) => {
    const answer = (await response.json()) as { usage?: { cost: number } };
    expect([response.status, answer]).toMatchObject([200, {}]);
    return answer.usage!.cost;
  };

  test('of a generation it says the price with what it follows from, and locks nothing', async () => {
    const before = await spine.balance();
    const answer = await quoted('/image/generate', { model: 'test/tiers', width: 1024, height: 1024, variants: 2 });
    expect(answer).toMatchObject({
      price_usd: 0.04,
      valid: true,
      message: '',
      price_micro_usdc: 40_000,
      exact: true,
      breakdown: [{ meter: 'image', units: 2, unit_price_usd: 0.02 }],
      resolved: { n: 2, images: null, resolution: '1K', quality: null },
      quote_id: expect.stringMatching(/^qt_[0-9a-f]{32}$/) as string,
    });
    expect(Date.parse(answer.valid_until)).toBeGreaterThan(Date.now() + late + 200_000);
    expect(await spine.balance()).toEqual(before);
    expect(await costOf(await generate(ask({ n: 2, quote_id: answer.quote_id })))).toBe(0.04);
  });

  test.each([
    ['images', { images: [IMAGE, IMAGE, IMAGE] }],
    ['images, and a mask as one more', { images: [IMAGE, IMAGE], mask: IMAGE }],
  ])('of an edit it counts the %s, and takes the whole call', async (_, inputs) => {
    const counted = await quoted('/image/edit', { model: 'test/tiers', image_count: 3, variants: 2 });
    expect(counted).toMatchObject({ price_usd: 0.109, resolved: { n: 2, images: 3 } });
    const body = ask({ n: 2, ...inputs, watermark: false });
    const whole = await quoted('/image/edit', body);
    expect(whole.price_usd).toBe(counted.price_usd);
    for (const { quote_id: id } of [counted, whole])
      expect(await costOf(await spine.post('/image/edit', body, { 'x-quote-id': id }))).toBeCloseTo(0.109, 9);
  });

  test.each([
    ['/image/generate', { resolution: '8K' }, /resolution 8K is not made by Painter; it makes 1K, 2K/],
    ['/image/generate', { quality: 'low' }, /quality low has no price/],
    ['/image/generate', { safe_mode: true }, /safe_mode is not taken/],
    ['/image/edit', { model: 'test/paint' }, /edits no images/],
  ])('%s of %j is not valid, and says why', async (path, more, message) => {
    const answer = await quoted(path, ask(more));
    expect(answer).toEqual({ price_usd: 0, valid: false, message: expect.stringMatching(message) as string });
  });

  test('a request that is wrong is refused, and not quoted', async () => {
    expect(await errorOf(await spine.post('/image/generate/quote', { model: 'test/none' }))).toMatchObject({
      status: 404,
      code: 'invalid_model',
    });
    expect(
      await errorOf(await spine.post('/image/generate/quote', { variants: 11, model: 'test/tiers' })),
    ).toMatchObject({
      status: 400,
      param: 'variants',
    });
    expect(
      await errorOf(await spine.post('/image/edit/quote', ask({ images: [IMAGE], image_count: 2 }))),
    ).toMatchObject({ status: 400, param: 'image_count' });
  });

  test('it is for one call, of one account, for some time', async () => {
    const { quote_id: id } = await quoted('/image/generate', ask());
    const { key } = await spine.tenant(`other-${engine}`, '1');
    expect(await errorOf(await generate(ask({ quote_id: id }), { authorization: `Bearer ${key}` }))).toMatchObject({
      status: 404,
      code: 'not_found',
      param: 'quote_id',
    });
    for (const wrong of ['qt_x', 7, `qt_${'0'.repeat(32)}`])
      expect((await generate(ask({ quote_id: wrong }))).status).toBe(wrong === 7 ? 400 : 404);
    expect((await generate(ask({ quote_id: id }))).status).toBe(200);
    expect(await errorOf(await generate(ask({ quote_id: id })))).toMatchObject({ status: 409, code: 'quote_used' });
    const { quote_id: old } = await quoted('/image/generate', ask());
    late += 300_001;
    expect(await errorOf(await generate(ask({ quote_id: old })))).toMatchObject({ status: 409, code: 'quote_expired' });
  });

  test.each([
    [{ n: 3 }, 'n'],
    [{ resolution: '2K' }, 'resolution'],
    [{ quality: 'high' }, 'quality'],
    [{ model: 'test/paint' }, 'model'],
  ])('a call with %j is another one than was quoted', async (more, param) => {
    const { quote_id: id } = await quoted('/image/generate', ask({ n: 2 }));
    expect(await errorOf(await generate(ask({ n: 2, quote_id: id, ...more })))).toMatchObject({
      status: 409,
      code: 'quote_mismatch',
      param,
    });
    expect((await generate(ask({ n: 2, quote_id: id }))).status).toBe(200);
  });

  test('two calls at once: one has the quote', async () => {
    const { quote_id: id } = await quoted('/image/generate', ask());
    const statuses = await Promise.all(
      Array.from({ length: 5 }, async () => (await generate(ask({ quote_id: id }))).status),
    );
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409, 409]);
  });

  test('a call that fails leaves it to the next one, and a repeat is no second use', async () => {
    const { quote_id: id } = await quoted('/image/generate', ask());
    provider.answer((_request, response) => json(response, 500, {}));
    expect((await generate(ask({ quote_id: id }))).status).toBe(500);
    await spine.quiet();
    provider.answer(paintAsAsked);
    const headers = { 'idempotency-key': `quoted-${engine}` };
    const first = await generate(ask({ quote_id: id }), headers);
    await first.text();
    const second = await generate(ask({ quote_id: id }), headers);
    expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 200, 'true']);
  });

  test('a call that died with its gateway does not eat it', async () => {
    const { quote_id: id } = await quoted('/image/generate', ask());
    const die = (usedAt: number) =>
      spine.app.database.query(
        { name: 'test/died', text: "UPDATE quotes SET call_id = 'gen-died', used_at = $2 WHERE id = $1" },
        [id, usedAt],
      );
    await die(Date.now() + late);
    expect((await generate(ask({ quote_id: id }))).status).toBe(409);
    await die(Date.now() + late - 61_000);
    expect((await generate(ask({ quote_id: id }))).status).toBe(200);
  });

  test('an account has a thousand at once', async () => {
    const { key, account } = await spine.tenant(`hoarder-${engine}`, '1');
    await spine.app.database.query(
      {
        name: 'test/hoard',
        text: `INSERT INTO quotes (id, account, primitive, service, offers, amount, created_at, valid_until)
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
          SELECT 'qt_hoard' || i, $1, 'image', 's', '[]', 1, 0, CAST($2 AS BIGINT) FROM n`,
      },
      [account, Date.now() + late + 60_000],
    );
    const headers = { authorization: `Bearer ${key}` };
    const refused = await spine.post('/image/generate/quote', ask(), headers);
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 300]);
    late += 70_000;
    expect((await spine.post('/image/generate/quote', ask(), headers)).status).toBe(200);
    late += 86_400_000 * 2;
    while ((await spine.app.database.query({ name: 'test/left', text: 'SELECT id FROM quotes LIMIT 1' })).length > 0)
      await createQuotes({ ...unused, database: spine.app.database, now: () => Date.now() + late }).sweep(1_000);
  });

  test('a lock that is refused leaves it, and the terms of a payment have its id', async () => {
    const { key } = await spine.tenant(`poor-${engine}`, '0.001');
    const headers = { authorization: `Bearer ${key}` };
    const { quote_id: id } = await quoted('/image/generate', ask(), headers);
    for (let round = 0; round < 2; round++) {
      const response = await generate(ask({ quote_id: id }), headers);
      const { accepts } = (await response.json()) as { accepts: { extra: { quoteId: string } }[] };
      expect([response.status, accepts[0]!.extra.quoteId]).toEqual([402, id]);
    }
  });

  test('the terms of an unpaid call are a quote of it, which its payment names', async () => {
    const body = { model: 'test/paint', prompt: 'A tollgate' };
    const send = (headers: Record<string, string> = {}) =>
      fetch(`${spine.url}/image/generate`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const unpaid = await send();
    const { accepts } = (await unpaid.json()) as { accepts: { amount: string; extra: { quoteId: string } }[] };
    expect([unpaid.status, accepts[0]!.amount]).toEqual([402, '3000000']);
    const wallet = `quoted-${engine}`;
    const { accepted: _theirs, ...payment } = payWith({ wallet, amount: 3_000_000n, nonce: wallet });
    const paid = await send({ 'payment-signature': toHeader({ ...payment, accepted: accepts[0] }) });
    expect(await costOf(paid)).toBe(3);
    expect((await spine.app.ledger.balance(escrowOf(accountOf(wallet))))?.available).toBe(0n);
    const [row] = await spine.app.database.query(
      { name: 'test/quote-of', text: 'SELECT call_id FROM quotes WHERE id = $1' },
      [accepts[0]!.extra.quoteId],
    );
    expect(row!['call_id']).toBe(paid.headers.get('x-generation-id'));
  });
});
