import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { solanaWallet } from '../support/wallets.ts';
import { startVendor } from './prices/vendor-upstream.ts';

// A consumer's own key at a provider: it reaches that provider at that address for that account, and nothing else.

const MODEL = 'acme/model';
const OTHER = 'acme/other';
/** Of two providers, of which only the second takes own keys. */
const HALF = 'acme/half';
const KEY = 'sk-own-0123456789-abcdefgh-WXYZ';
const OPERATORS = 'sk-of-the-operator';

let vendor: Awaited<ReturnType<typeof startVendor>>;
let moved: Awaited<ReturnType<typeof startVendor>>;
let spine: Spine;
let proxy: DialledIn;
let dataDir: string;
const toml = (url: string) =>
  `${UNHURRIED}[billing]\nfee_bps = 1000\n[tunnel]\nproviders = "anyone"\nshared_names = ["${MODEL}"]\n` +
  modelBlock({
    name: MODEL,
    provider: 'Acme',
    url,
    prompt: 2,
    completion: 10,
    pricing: `tiers = [{ above = 2000, prompt = 4 }]\nservice_tiers = { flex = { prompt = 1, completion = 5 } }`,
    params: 'own_keys = true\nwires = ["messages"]',
  }) +
  modelBlock({ name: OTHER, provider: 'Others', url, prompt: 2, completion: 10 }) +
  modelBlock({ name: HALF, provider: 'Acme', url, prompt: 2, completion: 10 }) +
  modelBlock({ name: HALF, provider: 'Half', url, prompt: 2, completion: 10, params: 'own_keys = true' });
const wallet = solanaWallet();
const start = (url: string) =>
  startSpine({ toml: toml(url), credit: '100', dataDir, env: { TEST_UPSTREAM_KEY: OPERATORS } });

beforeAll(async () => {
  vendor = await startVendor();
  moved = await startVendor();
  dataDir = newDataDirectory();
  spine = await start(vendor.url);
  proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({ url: vendor.url, name: MODEL, provider: 'Tunnel' }),
    wallet,
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await proxy.close();
    await spine.stop();
    await vendor.stop();
    await moved.stop();
  }
});

const usage = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly sent: string | undefined;
  readonly generation: Record<string, unknown> | null;
}

async function call(key: string, more: object = {}, path = '/chat/completions', at = vendor): Promise<Answer> {
  const before = at.reached.length;
  const answer = await fetch(`${spine.url}${path}`, {
    method: 'POST',
    headers: { ...bearer(key), 'content-type': 'application/json' },
    body: JSON.stringify({
      model: MODEL,
      provider: { only: ['Acme'] },
      max_tokens: 50,
      messages: [{ role: 'user', content: 'a'.repeat(100) }],
      ...more,
    }),
  });
  const text = await answer.text();
  const reached = at.reached.length > before ? at.reached.at(-1)! : null;
  const sent = reached?.headers['authorization'] ?? (reached?.headers['x-api-key'] as string | undefined);
  const id = answer.headers.get('x-generation-id');
  const generation =
    answer.status === 200 ? ((await spine.generation(id, key)) as unknown as Record<string, unknown>) : null;
  return { status: answer.status, text, sent, generation };
}

const keys = (method: string, body?: object, key = spine.key, path = '') =>
  fetch(`${spine.url}/provider-keys${path}`, {
    method,
    headers: { ...bearer(key), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const store = (provider = 'Acme', key = KEY, of = spine.key) => keys('POST', { provider, key }, of);

/** 60 prompt and 10 completion tokens at 2 and 10 USD per 1M. */
const FULL = 220;
const answerUsual = () => {
  vendor.reply = { usage: usage(60, 10) };
};

test('is stored, and never shown', async () => {
  const answer = await store();
  const text = await answer.text();
  expect(answer.status).toBe(201);
  expect(JSON.parse(text)).toMatchObject({
    data: [{ provider_name: 'Acme', address: vendor.url, last_four: 'WXYZ', used: true }],
  });
  for (const said of [text, await (await keys('GET')).text()]) expect(said).not.toContain(KEY.slice(0, 20));
  const rows = await spine.app.database.query(adHoc('SELECT * FROM provider_keys'));
  expect(rows).toHaveLength(1);
  expect(
    JSON.stringify(rows, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
  ).not.toContain('abcdefgh');
});

describe('a call of its account', () => {
  test('goes out with it, and costs a part of the price, all of which is the fee', async () => {
    answerUsual();
    const { sent, generation } = await call(spine.key);
    expect(sent).toBe(`Bearer ${KEY}`);
    expect(generation).toMatchObject({ cost_micro_usdc: FULL * 0.05, fee_micro_usdc: FULL * 0.05, is_byok: true });
    expect(generation!['receipt']).toEqual(expect.any(String));
  });

  test.each([
    ['a long prompt', { messages: [{ role: 'user', content: 'a'.repeat(3_000) }] }, usage(2_001, 10), undefined, 405.2],
    ['a service tier', { service_tier: 'flex' }, usage(60, 10), 'flex', 5.5],
    ['a stream', { stream: true }, usage(60, 10), undefined, 11],
  ])('by its tiers: %s', async (_name, more, claim, tier, cost) => {
    vendor.reply = { usage: claim, tier };
    const { sent, generation } = await call(spine.key, more);
    expect(sent).toBe(`Bearer ${KEY}`);
    expect(generation).toMatchObject({ cost_micro_usdc: Math.ceil(cost), is_byok: true });
  });

  test('with the Messages API, too', async () => {
    vendor.reply = { usage: { input_tokens: 60, output_tokens: 10 } };
    const { sent, generation } = await call(spine.key, {}, '/messages');
    expect(sent).toContain(KEY);
    expect(generation).toMatchObject({ cost_micro_usdc: 11, is_byok: true });
  });

  test('prefers its provider, and never sends the key to another one', async () => {
    answerUsual();
    for (let i = 0; i < 20; i++) expect((await call(spine.key, { provider: {} })).sent).toBe(`Bearer ${KEY}`);
    for (const more of [{ provider: { only: ['Tunnel'] } }, { model: OTHER, provider: {} }]) {
      const { status, sent, generation } = await call(spine.key, more);
      expect(status).toBe(200);
      expect(sent ?? '').not.toContain(KEY);
      expect(generation).toMatchObject({ is_byok: false });
    }
  });

  test('goes out with the key of the operator to a model of that provider that takes no own keys', async () => {
    answerUsual();
    const { sent, generation } = await call(spine.key, { model: HALF, provider: { order: ['Acme'] } });
    expect(sent).toBe(`Bearer ${OPERATORS}`);
    expect(generation).toMatchObject({ provider_name: 'Acme', cost_micro_usdc: FULL, is_byok: false });
  });
});

describe('others pay the usual price, with the key of the operator', () => {
  const expectUsual = async (key: string, more: object = {}) => {
    answerUsual();
    const { status, text, sent, generation } = await call(key, more);
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(sent).toBe(`Bearer ${OPERATORS}`);
    expect(generation).toMatchObject({ cost_micro_usdc: FULL, fee_micro_usdc: FULL / 10, is_byok: false });
  };

  test('another account, also with a stored key of its own that was copied from this one', async () => {
    const { account, key } = await spine.tenant('stranger', '1');
    await expectUsual(key);
    await spine.app.database.batch([
      {
        statement: adHoc(
          `INSERT INTO provider_keys SELECT '${account}', provider, address, sealed, last_four, created_at FROM provider_keys`,
        ),
      },
    ]);
    const { key: fresh, account: other } = await spine.tenant('stranger-2', '1');
    await spine.app.database.batch([
      { statement: adHoc(`UPDATE provider_keys SET account = '${other}' WHERE account = '${account}'`) },
    ]);
    await expectUsual(fresh);
  });

  test('a key with a limit', async () => {
    const made = await spine.post('/keys', { label: 'limited', limit: 5 });
    const { key } = (await made.json()) as { key: string };
    await expectUsual(key);
    expect((await keys('GET', undefined, key)).status).toBe(403);
    expect((await store('Acme', KEY, key)).status).toBe(403);
    expect((await keys('DELETE', undefined, key, '/Acme')).status).toBe(403);
  });
});

describe('an answer about the key', () => {
  const refuse = (
    status: number,
    error: object = { message: `Incorrect API key provided: ${KEY}`, code: 'invalid_api_key' },
  ) => {
    const answer = vendor.answer;
    vendor.answer = (reached) =>
      reached.headers.authorization === `Bearer ${KEY}`
        ? {
            status,
            type: 'application/json',
            text: JSON.stringify({ error }),
          }
        : answer(reached);
    return () => {
      vendor.answer = answer;
    };
  };

  test.each([
    // Google's answer to a wrong key.
    [400, 422],
    [401, 422],
    [402, 422],
    [403, 422],
    [429, 429],
  ])('%i ends the call with %i, shows no key, and is nobody’s fault', async (status, told) => {
    const restore = refuse(status);
    try {
      answerUsual();
      for (let i = 0; i < 8; i++) {
        const { status: got, text } = await call(spine.key, { provider: {} });
        expect(got).toBe(told);
        expect(text).toContain('your own key');
        expect(text).not.toContain(KEY);
      }
      const { key } = await spine.tenant(`beside-${status}`, '1');
      expect(await call(key)).toMatchObject({ status: 200, sent: `Bearer ${OPERATORS}` });
    } finally {
      restore();
    }
    answerUsual();
    expect(await call(spine.key)).toMatchObject({ status: 200, sent: `Bearer ${KEY}` });
  });

  test('that its account is used up says so, with the word that keeps SDKs from retrying', async () => {
    const message = `You exceeded your current quota of org-abcdefgh with ${KEY}`;
    for (const error of [
      { message, type: 'insufficient_quota', code: null },
      { message, code: 'insufficient_quota' },
    ]) {
      const restore = refuse(429, error);
      try {
        const reply = await fetch(`${spine.origin}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            model: MODEL,
            messages: [{ role: 'user', content: 'hi' }],
            provider: { only: ['Acme'] },
          }),
        });
        const text = await reply.text();
        expect([reply.status, reply.headers.get('x-should-retry'), reply.headers.get('retry-after')]).toEqual([
          429,
          'false',
          null,
        ]);
        expect(JSON.parse(text)).toMatchObject({
          error: {
            code: 'insufficient_quota',
            message: expect.stringMatching(
              /^Acme answered your own key with 429: You exceeded your current quota of … with/,
            ) as string,
          },
        });
        expect(text).not.toContain(KEY);
      } finally {
        restore();
      }
    }
  });

  test.each([
    [404, { message: 'The model does not exist or you do not have access to it', code: 'model_not_found' }],
    [400, { message: 'Your organization must be verified to stream this model' }],
  ])('of %i that may be due to its account is nobody’s fault', async (status, error) => {
    const { key: other } = await spine.tenant(`beside-account-${status}`, '1');
    const restore = refuse(status, error);
    try {
      answerUsual();
      for (let i = 0; i < 8; i++) await call(spine.key);
      expect(await call(other)).toMatchObject({ status: 200, sent: `Bearer ${OPERATORS}` });
    } finally {
      restore();
    }
    // Its own calls find the provider as healthy as before, too.
    answerUsual();
    for (let i = 0; i < 5; i++)
      expect(await call(spine.key, { provider: {} })).toMatchObject({ status: 200, sent: `Bearer ${KEY}` });
  });

  test('that its provider is away is no answer about the key: its next call goes to another', async () => {
    const { key: owner } = await spine.tenant('outage', '1');
    expect((await store('Acme', KEY, owner)).status).toBe(201);
    const restore = refuse(500, { message: 'away' });
    try {
      answerUsual();
      expect(await call(owner, { provider: {} })).toMatchObject({ status: 200, generation: { is_byok: false } });
    } finally {
      restore();
    }
    answerUsual();
    expect(await call(owner, { provider: {} })).toMatchObject({ status: 200, generation: { is_byok: false } });
    expect(await call(owner)).toMatchObject({ status: 200, sent: `Bearer ${KEY}` });
  });

  test.each([
    ['an error in the place of a reply', 200, JSON.stringify({ error: { message: `bad key ${KEY}`, code: KEY } })],
    ['an error without JSON', 500, `<p>${KEY}</p>`],
    ['a broken reply', 200, `{"key": "${KEY}"`],
    ['an error in a stream', 200, `data: {"error": {"message": "bad key ${KEY}"}}\n\n`],
    ['an event that is no JSON', 200, `data: {"choices": "${KEY}\n\n`],
  ])('that repeats it is not passed on: %s', async (name, status, text) => {
    const answer = vendor.answer;
    const stream = name.includes('stream') || name.includes('event');
    vendor.answer = () => ({ status, text, type: stream ? 'text/event-stream' : 'application/json' });
    try {
      const { status: got, text: told } = await call(spine.key, { stream });
      expect(got).toBeGreaterThanOrEqual(stream ? 200 : 400);
      expect(told).not.toContain('0123456789-abcdefgh');
    } finally {
      vendor.answer = answer;
    }
  });
});

test.each([
  [{ provider: 'Others', key: KEY }, 404, 'These do: Acme, Half'],
  [{ provider: 'Nobody', key: KEY }, 404, 'These do: Acme, Half'],
  [{ provider: 'Tunnel', key: KEY }, 404, 'These do: Acme, Half'],
  [{ provider: 'Acme', key: 'with a space in sk-secret' }, 400, 'key'],
  [{ provider: 'Acme', key: 'short' }, 400, 'key'],
  [{ provider: 'Acme' }, 400, 'key'],
  [{ provider: 'Acme', key: KEY, address: 'https://evil.example' }, 400, 'address'],
])('%j is refused with %i', async (body, status, said) => {
  const answer = await keys('POST', body);
  const text = await answer.text();
  expect(answer.status).toBe(status);
  expect(text).toContain(said);
  expect(text).not.toContain('sk-secret');
  expect(text).not.toContain(KEY);
});

test('is not used at another address of the provider until it is stored again', async () => {
  await proxy.close();
  await spine.stop();
  spine = await start(moved.url);
  proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({ url: vendor.url, name: MODEL, provider: 'Tunnel' }),
    wallet,
  });
  moved.reply = { usage: usage(60, 10) };
  expect(await (await keys('GET')).json()).toMatchObject({ data: [{ address: vendor.url, used: false }] });
  expect((await call(spine.key, {}, undefined, moved)).sent).toBe(`Bearer ${OPERATORS}`);
  expect((await store()).status).toBe(201);
  expect((await call(spine.key, {}, undefined, moved)).sent).toBe(`Bearer ${KEY}`);
});

test('that is deleted is not used any more', async () => {
  expect(await (await keys('DELETE', undefined, spine.key, '/acme')).json()).toEqual({ data: { deleted: true } });
  expect((await keys('DELETE', undefined, spine.key, '/acme')).status).toBe(404);
  expect(await (await keys('GET')).json()).toEqual({ data: [] });
  moved.reply = { usage: usage(60, 10) };
  expect((await call(spine.key, {}, undefined, moved)).sent).toBe(`Bearer ${OPERATORS}`);
});

test('is in no line of the log', () => {
  expect(spine.logs.length).toBeGreaterThan(0);
  expect(spine.logs.join('\n')).not.toContain('0123456789-abcdefgh');
  expect(JSON.stringify(proxy.lines)).not.toContain('0123456789-abcdefgh');
});
