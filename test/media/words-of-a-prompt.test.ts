import { afterEach, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { imageBlock, json, paintAsAsked, png, pngThatSays, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Some vendors bill the words of a prompt beside the images. They have a price, or are few.

const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  const more = { url, params: 'edits = true', lines: 'supported_params = ["negative_prompt"]' };
  return {
    toml:
      UNHURRIED +
      imageBlock({
        ...more,
        pricing: 'prompt = 5\ninput_image = 0.003\nresolutions = { "1K" = 0.04, "2K" = 0.08 }',
      }) +
      imageBlock({ ...more, name: 'test/plain' }) +
      imageBlock({ ...more, name: 'test/free', pricing: 'prompt = 0\ninput_image = 0' }),
  };
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const picture = png(64, 64).toString('base64');
const url = `data:image/png;base64,${picture}`;

/** The vendor counts the tokens of words with this usage; null for none. */
const counts = (usage: object | null) =>
  provider.answer(({ body }, response) => {
    const one = { b64_json: pngThatSays(1024, 1024).toString('base64') };
    const data = Array.from({ length: Number(body['n'] ?? 1) }, () => one);
    json(response, 200, { created: 1, data, ...(usage === null ? {} : { usage }) });
  });

async function charged(send: () => Promise<Response>) {
  const before = await spine.balance();
  const response = await send();
  const text = await response.text();
  return { status: response.status, text, cost: Number(before.available - (await spine.balance()).available) };
}

/** A request for one image with this prompt at each door. */
const DOORS: Readonly<Record<string, (prompt: string, model?: string) => Promise<Response>>> = {
  'POST /image/generate': (prompt, model = 'test/paint') => spine.post('/image/generate', { model, prompt }),
  'POST /images/generations': (prompt, model = 'test/paint') => spine.post('/images/generations', { model, prompt }),
  'POST /images': (prompt, model = 'test/paint') => spine.post('/images', { model, prompt }),
  'JSON-RPC': (prompt, model = 'test/paint') =>
    spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'images/generate', params: { model, prompt } }),
  chat: (prompt, model = 'test/paint') =>
    spine.post('/chat/completions', { model: `image/${model}`, messages: [{ role: 'user', content: prompt }] }),
  MCP: (prompt, model = 'test/paint') =>
    fetch(`${spine.origin}/mcp/image/${model}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${spine.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'generate_image', arguments: { prompt } },
      }),
    }),
  A2A: (prompt, model = 'test/paint') =>
    fetch(`${spine.origin}/a2a/image/${model}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'message/send',
        params: { message: { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: prompt }] } },
      }),
    }),
};

/** 12,000 characters that are a token each. */
const DENSE = '骉'.repeat(12_000);

test.each(Object.entries(DOORS))('%s is charged the words that the vendor counts', async (_door, send) => {
  counts({ input_tokens: 12_000, output_tokens: 9, total_tokens: 12_009 });
  expect((await charged(() => send(DENSE))).cost).toBe(40_000 + 60_000);
});

test.each(Object.entries(DOORS))(
  '%s takes few words where they have no price, and any if they are free',
  async (_door, send) => {
    counts(null);
    const asked = provider.requests.length;
    const long = await charged(() => send('x'.repeat(2_001), 'test/plain'));
    expect(long.text).toMatch(/no price for words.*2000 bytes/);
    expect([long.cost, provider.requests.length - asked]).toEqual([0, 0]);
    expect((await charged(() => send('x'.repeat(2_000), 'test/plain'))).cost).toBe(40_000);
    expect((await charged(() => send(DENSE, 'test/free'))).cost).toBe(40_000);
  },
);

test.each([
  ['none, so its words are measured, a token for four bytes', null, 250, []],
  [
    'those of pictures too, which have their own price',
    { input_tokens: 900, input_tokens_details: { text_tokens: 70, image_tokens: 830 } },
    70,
    [],
  ],
  ['none, with a number', { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, 0, []],
  ['by the names of chat', { prompt_tokens: 33, completion_tokens: 1, total_tokens: 34 }, 33, []],
  [
    'more than there can be',
    { input_tokens: 90_000, output_tokens: 1, total_tokens: 90_001 },
    1_064,
    [{ meter: 'prompt', claimed: 90_000, most: 1_064 }],
  ],
] as const)('a vendor that counts %s', async (_name, usage, tokens, claims) => {
  counts(usage);
  const { text, cost } = await charged(() =>
    spine.post('/image/generate', { model: 'test/paint', prompt: 'x'.repeat(900), negative_prompt: 'y'.repeat(100) }),
  );
  expect(cost).toBe(40_000 + tokens * 5);
  const { id, usage: shown } = JSON.parse(text) as { id: string; usage: object };
  expect(shown).toMatchObject({ images: 1, prompt_tokens: tokens, cost: cost / 1e6 });
  expect((await spine.generation(id)).claims).toEqual(claims);
});

test('words of an edit are those beside its pictures', async () => {
  counts({ input_tokens: 500, output_tokens: 9, total_tokens: 509 });
  const edit = (images: readonly string[], model = 'test/paint') =>
    charged(() => spine.post('/image/edit', { model, prompt: 'x'.repeat(400), images }));
  // What the vendor counts has tokens of pictures in it, so the words are measured.
  expect((await edit([url, url])).cost).toBe(40_000 + 2 * 3_000 + 100 * 5);
  counts(null);
  expect(await edit([url, url], 'test/plain')).toMatchObject({
    status: 422,
    cost: 0,
    text: expect.stringMatching(/no price for images that are edited/) as string,
  });
  expect((await edit([url], 'test/plain')).cost).toBe(40_000);
  expect((await edit([url, url], 'test/free')).cost).toBe(40_000);
});

test('a small image costs less, and its words what they cost', async () => {
  provider.answer(paintAsAsked);
  counts({ input_tokens: 10, output_tokens: 1, total_tokens: 11 });
  const small = await charged(() =>
    spine.post('/image/generate', { model: 'test/paint', prompt: 'A tollgate', resolution: '2K' }),
  );
  expect(small.cost).toBe(40_000 + 50);
});

test('a quote counts the words of its prompt, or those of a short one', async () => {
  counts({ input_tokens: 20, output_tokens: 1, total_tokens: 21 });
  const quote = async (more: object) =>
    (await (await spine.post('/image/generate/quote', { model: 'test/paint', ...more })).json()) as Quote;
  expect(await quote({ prompt: 'x'.repeat(10_000) })).toMatchObject({
    price_micro_usdc: 40_000 + 10_064 * 5,
    exact: false,
  });
  const short = await quote({});
  expect(short).toMatchObject({ price_micro_usdc: 40_000 + 2_064 * 5, exact: false });
  const call = (prompt: string) =>
    charged(() => spine.post('/image/generate', { model: 'test/paint', prompt, quote_id: short.quote_id }));
  expect(await call('x'.repeat(2_001))).toMatchObject({
    cost: 0,
    text: expect.stringMatching(/may cost more/) as string,
  });
  expect((await call('A tollgate')).cost).toBe(40_000 + 100);
});

interface Quote {
  readonly quote_id: string;
  readonly price_micro_usdc: number;
  readonly exact: boolean;
}

test('lists show the price of words in USD for 1M tokens, and for one where all models do', async () => {
  const shown = async (path: string) => (await spine.get(path)).json();
  const { image_models: listed } = (await shown('/models?type=image')) as { image_models: object[] };
  expect(listed).toContainEqual(
    expect.objectContaining({ id: 'test/paint', pricing: expect.objectContaining({ prompt: 5 }) as object }),
  );
  expect(JSON.stringify(await shown('/models?output_modalities=image'))).toContain('"prompt":"0.000005"');
  expect(JSON.stringify(await shown('/images/models/test/paint/endpoints'))).toContain(
    '{"billable":"input_text","unit":"token","cost_usd":0.000005}',
  );
});
