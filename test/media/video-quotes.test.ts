import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { inject, expect, onTestFinished, test } from 'vitest';
import { escrowOf } from '#billing';
import { newDataDirectory } from '../support/data-directory.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { accountOf, createPaperChain, payWith, toHeader } from '../support/paper-chain.ts';
import { startProvider } from '../support/provider.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// A quote says what videos cost, and one call costs that: whatever the prices, also after they rose.

interface QuoteAnswer {
  readonly price_usd: number;
  readonly valid: boolean;
  readonly message: string;
  readonly quote_id: string;
  readonly price_micro_usdc: number;
}

const micros = fc.integer({ min: 100, max: 900_000 });
const pricesOf = fc.record({ small: micros, large: micros, base: micros });
type Prices = typeof pricesOf extends fc.Arbitrary<infer T> ? T : never;
const callOf = fc.record({
  n: fc.integer({ min: 1, max: 3 }),
  duration: fc.constantFrom('4s', '8s'),
  resolution: fc.constantFrom('720p', '1080p'),
  generate_audio: fc.boolean(),
});
type Asked = typeof callOf extends fc.Arbitrary<infer T> ? T : never;

const usd = (amount: number) => (amount / 1e6).toFixed(6);
const blockOf = (url: string, { small, large, base }: Prices) =>
  videoBlock({
    url,
    lines: 'durations = ["4s", "8s"]\nsupported_params = ["generate_audio"]',
    pricing: `per_second = { "720p" = "${usd(small)}", "1080p" = "${usd(large)}" }\nbase = "${usd(base)}"\naudio_multiplier = 2`,
  });
/** Micro-USD, from the rules of docs/use/videos.md. */
const expected = ({ small, large, base }: Prices, { n, duration, resolution, generate_audio: audio }: Asked) =>
  n * (Number.parseInt(duration, 10) * (resolution === '720p' ? small : large) * (audio ? 2 : 1) + base);

const quoteOf = async (spine: Spine, body: object, path = '/video/quote') => {
  const response = await spine.post(path, body);
  const answer = (await response.json()) as QuoteAnswer;
  expect([response.status, answer]).toMatchObject([200, {}]);
  return answer;
};
const retrieve = (spine: Spine, id: string) => spine.post('/video/retrieve', { task_id: id, wait_for_final: true });
const errorOf = async (response: Response) => ({
  status: response.status,
  ...((await response.json()) as { error: { code: string; param: string | null } }).error,
});

test.each(ENGINES)('on %s a quote is the charge, also of a gateway with other prices', async (engine) => {
  const dataDir = newDataDirectory();
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  if (fresh) onTestFinished(fresh.drop);
  const [filmer, provider] = [await startVideoProvider(), await startProvider()];
  onTestFinished(() => filmer.close());
  onTestFinished(() => provider.stop());
  const start = (prices: Prices) =>
    startSpine({
      dataDir,
      provider,
      credit: '1000000',
      toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${blockOf(filmer.url, prices)}`,
      ...(fresh ? { databaseUrl: fresh.url } : {}),
    });
  const bodyOf = (call: Asked) => ({ model: 'test/film', ...call });
  const charge = async (spine: Spine, call: Asked, id: string) => {
    const before = await spine.balance();
    const response = await spine.post('/video/queue', { ...bodyOf(call), prompt: 'A', quote_id: id });
    expect(response.status).toBe(200);
    const { id: task } = (await response.json()) as Queued;
    expect((await retrieve(spine, task)).status).toBe(200);
    const after = await spine.balance();
    expect(after.locked).toBe(before.locked);
    return Number(before.available - after.available);
  };
  const [[prices, later, calls]] = fc.sample(
    fc.tuple(pricesOf, pricesOf, fc.array(callOf, { minLength: 4, maxLength: 4 })),
    1,
  ) as [[Prices, Prices, Asked[]]];
  const first = await start(prices);
  const quotes: { id: string; call: Asked }[] = [];
  for (const call of calls) {
    const { quote_id: id, price_micro_usdc: amount } = await quoteOf(first, bodyOf(call));
    expect(amount).toBe(expected(prices, call));
    quotes.push({ id, call });
  }
  const half = quotes.length / 2;
  for (const { id, call } of quotes.slice(0, half)) {
    expect(await charge(first, call, id)).toBe(expected(prices, call));
  }
  expect(await first.faults()).toEqual([]);
  await first.stop();
  const second = await start(later);
  for (const { id, call } of quotes.slice(half)) {
    expect(await charge(second, call, id)).toBe(expected(prices, call));
  }
  expect((await quoteOf(second, bodyOf(calls[0]!))).price_micro_usdc).toBe(expected(later, calls[0]!));
  expect(await second.faults()).toEqual([]);
  await second.stop();
});

async function startWorld() {
  const filmer = await startVideoProvider();
  onTestFinished(() => filmer.close());
  const chain = createPaperChain();
  let late = 0;
  const limits = '[limits]\nrequests_per_minute = 1000000\nanonymous_requests_per_minute = 1000000\n';
  const spine = await startSpine({
    payments: chain.payments,
    now: () => Date.now() + late,
    elapsed: () => performance.now(),
    toml:
      `${limits}[media]\nfree_bytes_min = 0\n` +
      videoBlock({ url: filmer.url, pricing: 'per_second = { "720p" = 1 }' }) +
      videoBlock({ url: filmer.url, name: 'test/free', lines: 'durations = ["4s"]\nquotes = false' }),
  });
  onTestFinished(() => spine.stop());
  chain.credit(spine.app.ledger);
  return { filmer, spine, pass: (ms: number) => (late += ms) };
}

const CALL = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };

test('it says what the price follows from, at both doors, and each misuse is its error', async () => {
  const { filmer, spine, pass } = await startWorld();
  const before = await spine.balance();
  const { prompt: _, ...call } = CALL;
  const answer = await quoteOf(spine, { ...call, n: 2 });
  expect(answer).toMatchObject({
    price_usd: 8,
    valid: true,
    exact: true,
    breakdown: [{ meter: 'second', units: 8, unit_price_usd: 1 }],
    resolved: { n: 2, seconds: 4, resolution: '720p', audio: false },
  });
  expect(await quoteOf(spine, { primitive: 'video', ...CALL }, '/quotes')).toMatchObject({ price_usd: 4, exact: true });
  expect(await quoteOf(spine, { ...call, resolution: '4k' })).toEqual({
    price_usd: 0,
    valid: false,
    message: expect.stringContaining('resolution 4k is not made') as string,
  });
  // A provider may tell its price without being bound to it.
  const unbound = await quoteOf(spine, { ...CALL, model: 'test/free' });
  expect(unbound).toMatchObject({ price_usd: 0.45, valid: true });
  expect(unbound).not.toHaveProperty('quote_id');
  expect(await errorOf(await spine.post('/video/quote', { model: 'test/none', duration: '4s' }))).toMatchObject({
    status: 404,
    code: 'invalid_model',
  });
  expect(await spine.balance()).toEqual(before);

  const queue = (more: object, headers: Record<string, string> = {}) =>
    spine.post('/video/queue', { ...CALL, ...more }, headers);
  expect(await errorOf(await queue({ quote_id: answer.quote_id }))).toMatchObject({
    status: 409,
    code: 'quote_mismatch',
    param: 'n',
  });
  const other = await spine.tenant('stranger', '50');
  expect(
    await errorOf(await queue({ n: 2, quote_id: answer.quote_id }, { authorization: `Bearer ${other.key}` })),
  ).toMatchObject({ status: 404 });
  // A video that fails is free, and leaves the quote to the next one.
  filmer.begin(() => ({ status: 'failed' }));
  const { id } = (await (await queue({ n: 2 }, { 'x-quote-id': answer.quote_id })).json()) as Queued;
  expect(await (await retrieve(spine, id)).json()).toMatchObject({ status: 'failed' });
  filmer.begin(() => ({ status: 'in_progress' }));
  const { id: again } = (await (await queue({ n: 2, quote_id: answer.quote_id })).json()) as Queued;
  expect(await errorOf(await queue({ n: 2, quote_id: answer.quote_id }))).toMatchObject({
    status: 409,
    code: 'quote_used',
  });
  for (const job of filmer.jobs.values()) job.status = 'completed';
  expect((await retrieve(spine, again)).status).toBe(200);
  expect(before.available - (await spine.balance()).available).toBe(8_000_000n);
  const old = await quoteOf(spine, CALL);
  pass(3_600_000);
  expect(await errorOf(await queue({ quote_id: old.quote_id }))).toMatchObject({ status: 409, code: 'quote_expired' });
  expect(await spine.faults()).toEqual([]);
});

test('the terms of an unpaid video are a quote, and a payment to them is honoured', async () => {
  const { spine } = await startWorld();
  const post = (headers: Record<string, string> = {}) =>
    fetch(`${spine.url}/video/queue`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(CALL),
    });
  const unpaid = await post();
  expect(unpaid.status).toBe(402);
  const { accepts } = (await unpaid.json()) as { accepts: { amount: string; extra: { quoteId: string } }[] };
  expect(accepts[0]).toMatchObject({
    amount: '4000000',
    extra: { quoteId: expect.stringMatching(/^qt_[0-9a-f]{32}$/) as string },
  });
  const { accepted: _theirs, ...payment } = payWith({ wallet: 'filmer', amount: 4_000_000n, nonce: 'film' });
  const paid = await post({ 'payment-signature': toHeader({ ...payment, accepted: accepts[0] }) });
  expect(paid.status).toBe(200);
  const rows = await spine.app.database.query({
    name: 'test/quotes',
    text: 'SELECT id FROM quotes WHERE call_id IS NOT NULL',
  });
  expect(rows).toEqual([{ id: accepts[0]!.extra.quoteId }]);
  await spine.quiet();
  expect((await spine.app.ledger.balance(escrowOf(accountOf('filmer'))))?.available).toBe(0n);
  expect(await spine.faults()).toEqual([]);
});
