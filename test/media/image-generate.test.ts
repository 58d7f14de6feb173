import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import {
  answerWith,
  imageBlock,
  type Images,
  json,
  paintAsAsked,
  png,
  pngThatSays,
  startImageProvider,
} from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// `/image/generate`, the route of the contract: what is asked, answered, charged and refused.

const LISTED =
  'supported_params = ["seed", "guide_scale", "steps", "negative_prompt", "style_preset", "hide_watermark"]\nformats = ["png", "webp"]\naspect_ratios = ["1:1", "16:9"]\nresolutions = ["1K", "2K"]';

const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  return {
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 1\nimages_reply_bytes_max = 4194304\n` +
      imageBlock({ url }) +
      imageBlock({
        url,
        name: 'test/listed',
        lines: LISTED,
        pricing: 'resolutions = { "2K" = 0.08 }\nvariants = { "1K/high" = 0.12, "2K/high" = 0.2, "1K/low" = 0.01 }',
      }) +
      imageBlock({ url, name: 'test/free', generation: 0 }),
  };
});
beforeEach(() => {
  provider.answer(paintAsAsked);
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const ask = (more: object = {}) => ({ model: 'test/paint', prompt: 'A tollgate', ...more });
const generate = (body: unknown, headers: Record<string, string> = {}) => spine.post('/image/generate', body, headers);
const sent = () => provider.requests.at(-1)!.body;
const bytesOf = (dataUrl: string) => Buffer.from(dataUrl.slice(dataUrl.indexOf(',') + 1), 'base64');

async function painted(body: object, headers: Record<string, string> = {}): Promise<Images> {
  const response = await generate(body, headers);
  const text = await response.text();
  expect(`${response.status} ${text.slice(0, 300)}`).toMatch(/^200 /);
  return JSON.parse(text) as Images;
}

async function refusal(body: unknown, headers: Record<string, string> = {}) {
  const asked = provider.requests.length;
  const response = await generate(body, headers);
  const { error } = (await response.json()) as {
    error: { code: string; message: string; type: string; param: string | null };
  };
  expect(provider.requests.length).toBe(asked);
  return { status: response.status, ...error };
}

test('an image comes as a data URL, with what its file says, and costs its price', async () => {
  const before = await spine.balance();
  const response = await generate(ask({ width: 96, height: 64, seed: 7 }));
  const answer = (await response.json()) as Images;
  expect(answer).toMatchObject({
    status: 'completed',
    model: 'test/paint',
    provider_metadata: { provider: 'Painter' },
  });
  expect(answer.images).toHaveLength(1);
  expect(answer.images[0]).toMatchObject({ index: 0, width: 96, height: 64, format: 'png', seed: 7 });
  expect(bytesOf(answer.images[0]!.data_url)).toEqual(png(96, 64));
  expect(answer.usage).toMatchObject({ images: 1, cost: 0.04 });
  expect(response.headers.get('x-cost-usd')).toBe('0.04');
  expect(Number(response.headers.get('x-ratelimit-limit-requests'))).toBeGreaterThan(0);
  expect(response.headers.get('x-generation-id')).toBe(answer.id);
  const { available, locked } = await spine.balance();
  expect([before.available - available, locked]).toEqual([40_000n, 0n]);
  expect(await spine.generation(answer.id)).toMatchObject({ state: 'settled', cost_micro_usdc: 40_000 });
  expect(sent()).toEqual({
    model: 'upstream-paint',
    prompt: 'A tollgate',
    n: 1,
    size: '96x64',
    seed: 7,
    response_format: 'b64_json',
  });
});

test.each([
  ['nothing', {}, 0.04, '1024x1024'],
  ['a tier', { resolution: '2K' }, 0.08, '2048x2048'],
  ['a size of a tier', { width: 1536, height: 1024 }, 0.08, '1536x1024'],
  ['a size within 1K', { width: '1344', height: 768 }, 0.04, '1344x768'],
  ['a ratio', { aspect_ratio: '16:9' }, 0.04, '1344x768'],
  ['a quality', { quality: 'high' }, 0.12, '1024x1024'],
  ['a tier and a quality', { resolution: '2K', quality: 'high' }, 0.2, '2048x2048'],
  ['a quality that only another tier prices', { resolution: '2K', quality: 'low' }, 0.08, '2048x2048'],
  ['quality auto', { quality: 'auto', size: '1024x1024' }, 0.04, '1024x1024'],
])('the price of %s is known, and times the number', async (_what, more, price, size) => {
  const [width, height] = size.split('x').map(Number);
  const image = pngThatSays(width!, height!).toString('base64');
  provider.answer(answerWith({ b64_json: image }, { b64_json: image }));
  const { usage } = await painted({ ...ask({ model: 'test/listed', n: 2 }), ...more });
  expect(usage.cost).toBeCloseTo(2 * price, 9);
  expect(sent()['size']).toBe(size);
});

test('output_type file answers the bytes of the image, and no page that a browser would run', async () => {
  const polyglot = Buffer.concat([png(64, 64), Buffer.from('<script>alert(1)</script>')]);
  provider.answer(answerWith({ b64_json: polyglot.toString('base64') }));
  const response = await generate(ask({ output_type: 'file' }));
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'image/png',
    'content-length': String(polyglot.length),
    'content-disposition': 'inline; filename="image_0.png"',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'x-task-status': 'completed',
  });
  expect(Buffer.from(await response.arrayBuffer())).toEqual(polyglot);
});

test('a file that is an image and a page is served as the image that it says it is', async () => {
  const both = Buffer.concat([png(64, 64), Buffer.from('<html><script>alert(1)</script></html>')]);
  provider.answer(answerWith({ b64_json: both.toString('base64') }));
  const response = await generate(ask({ output_type: 'file' }));
  expect(Buffer.from(await response.arrayBuffer())).toEqual(both);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'image/png',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
});

test('fields reach the provider under its names', async () => {
  await painted(
    ask({
      model: 'test/listed',
      negative_prompt: 'cars',
      guidance_scale: 7.5,
      steps: 20,
      style_preset: 'anime',
      hide_watermark: true,
      format: 'webp',
      user: 'somebody',
    }),
  );
  expect(sent()).toMatchObject({
    negative_prompt: 'cars',
    guidance_scale: 7.5,
    num_inference_steps: 20,
    style_preset: 'anime',
    hide_watermark: true,
    output_format: 'webp',
    user: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  });
  expect(sent()).not.toHaveProperty('metadata');
});

test('values that ask for nothing are not sent', async () => {
  await painted(
    ask({ seed: -1, quality: 'auto', safe_mode: false, enable_web_search: false, lora_strength: 0, stream: false }),
  );
  expect(Object.keys(sent()).toSorted()).toEqual(['model', 'n', 'prompt', 'response_format']);
});

test.each([
  ['lora_strength', { lora_strength: 5 }],
  ['safe_mode', { safe_mode: true }],
  ['enable_web_search', { enable_web_search: true }],
  ['style', { style: 'vivid' }],
  ['made_up', { made_up: 1 }],
  ['resolution', { resolution: '4K' }],
  ['size', { size: '4096x4096' }],
  ['aspect_ratio', { aspect_ratio: '3:2' }],
  ['output_format', { output_format: 'jpeg' }],
  ['stream', { stream: true }],
])('a field that no provider takes is refused by its name: %s', async (param, more) => {
  const { status, code, message, param: named } = await refusal(ask({ model: 'test/listed', ...more }));
  expect([status, code, named]).toEqual([422, 'unprocessable', param]);
  expect(message).toContain(param);
});

test.each([
  ['prompt', { prompt: '' }],
  ['prompt', { prompt: undefined }],
  ['prompt', { prompt: 'x'.repeat(32_001) }],
  ['n', { n: 0 }],
  ['n', { n: 11 }],
  ['n', { n: 1.5 }],
  ['n', { n: '2' }],
  ['n', { n: 2, output_type: 'file' }],
  ['n', { n: 2, return_binary: true }],
  ['variants', { n: 2, variants: 3 }],
  ['num_images', { num_images: 10 }],
  ['width', { width: 63, height: 64 }],
  ['width', { width: 4097, height: 64 }],
  ['height', { width: 64 }],
  ['width', { height: 64 }],
  ['size', { size: 'big' }],
  ['size', { size: '9999x64' }],
  ['size', { size: '64x64', width: 128, height: 64 }],
  ['resolution', { resolution: '1K', width: 2048, height: 2048 }],
  ['aspect_ratio', { aspect_ratio: 'wide' }],
  ['aspect_ratio', { aspect_ratio: '9:1' }],
  ['quality', { quality: 'best' }],
  ['output_format', { output_format: 'gif' }],
  ['output_type', { output_type: 'url' }],
  ['seed', { seed: -2 }],
  ['seed', { seed: 2_147_483_648 }],
  ['guide_scale', { guide_scale: 50.1 }],
  ['cfg_scale', { cfg_scale: -1 }],
  ['guidance_scale', { guidance_scale: 51 }],
  ['format', { format: 'gif' }],
  ['variants', { variants: 11 }],
  ['steps', { steps: 0 }],
  ['lora_strength', { lora_strength: 101 }],
  ['hide_watermark', { hide_watermark: 'no' }],
  ['metadata', { metadata: { text: 'x'.repeat(4096) } }],
  ['N', { N: 5 }],
  ['Prompt', { Prompt: 'another' }],
])('a value out of its limits is refused by its name: %s', async (param, more) => {
  const { status, code, type, message } = await refusal(ask(more));
  expect([status, code, type]).toEqual([400, 'invalid_request', 'invalid_request']);
  expect(message).toMatch(new RegExp(`\\b${param}\\b`));
});

test.each([
  ['images', { images: [{ b64: 'iVBORw0KGgo=' }] }],
  ['image', { image: 'iVBORw0KGgo=' }],
  ['mask', { mask: { b64: 'iVBORw0KGgo=' } }],
])('%s is refused where images are made of a prompt alone', async (param, more) => {
  expect(await refusal(ask(more))).toMatchObject({
    status: 400,
    code: 'invalid_request',
    message: `${param} is for edits: send this request to /image/edit`,
  });
  const response = await spine.post('/images/generations', ask(more));
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { param, message: `${param} is for edits: send this request to /images/edits` } },
  ]);
});

test('no image is as good as none', async () => {
  expect((await painted(ask({ images: [], image: null, mask: null }))).images).toHaveLength(1);
});

test('an unknown model, a wrong key and a wrong body have the errors of the door', async () => {
  expect(await refusal(ask({ model: 'test/none' }))).toMatchObject({
    status: 404,
    code: 'invalid_model',
    message: 'Model not found: test/none. The nearest: test/free, test/listed, test/paint',
  });
  expect(await refusal(ask(), { authorization: 'Bearer svc-sk-v2-x' })).toMatchObject({
    status: 401,
    code: 'unauthorized',
  });
  expect(await refusal('{')).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(await refusal('x', { 'content-type': 'text/plain' })).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(await refusal(ask({ model: 'test/model' }))).toMatchObject({
    status: 404,
    code: 'invalid_model',
    message: 'Model not found: test/model. It is a chat model: ask it at /chat/completions',
  });
});

test('a chat that names an image model is told its door', async () => {
  const message = /^Model not found: test\/paint\. It is an image model: .* as image\/test\/paint in a chat$/;
  const messages = [{ role: 'user', content: 'x' }];
  for (const [path, body] of [
    ['/chat/completions', { messages }],
    ['/messages', { messages, max_tokens: 5 }],
    ['/embeddings', { input: 'x' }],
  ] as const) {
    const response = await spine.post(path, { model: 'test/paint', ...body });
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { error: { message: expect.stringMatching(message) } },
    ]);
  }
});

describe('what the provider answers', () => {
  const b64 = png(64, 64).toString('base64');

  test('fewer images than asked for cost less', async () => {
    provider.answer(answerWith({ b64_json: b64 }, { b64_json: b64 }));
    const { images, usage } = await painted(ask({ n: 3 }));
    expect([images.length, usage.images, usage.cost]).toEqual([2, 2, 0.08]);
  });

  test('the seed is the one that the provider used, if it tells one, else the one that was sent, and null if nobody knows', async () => {
    const seeds = async (body: object, more: object = {}) => {
      provider.answer((_request, response) => json(response, 200, body));
      return (await painted(ask({ n: 2, ...more }))).images.map(({ seed }) => seed);
    };
    const two = [{ b64_json: b64, seed: 9 }, { b64_json: b64 }];
    expect(await seeds({ data: two }, { seed: 7 })).toEqual([9, 7]);
    expect(await seeds({ data: two, seed: 4 }, { seed: 7 })).toEqual([9, 4]);
    expect(await seeds({ data: two })).toEqual([9, null]);
  });

  test('images beyond those asked for are neither given out nor charged', async () => {
    provider.answer(answerWith({ b64_json: b64 }, { b64_json: b64 }));
    const { id, images, usage } = await painted(ask());
    expect([images.length, usage.cost]).toEqual([1, 0.04]);
    expect(await spine.generation(id)).toMatchObject({
      flags: ['usage_implausible'],
      claims: [{ meter: 'image', claimed: 2, most: 1 }],
    });
  });

  test('an item that is no image is left out', async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('base64');
    provider.answer(answerWith({ b64_json: svg }, { b64_json: `data:image/png;base64,${b64}`, seed: 9 }, {}));
    const { images, usage } = await painted(ask({ n: 3 }));
    expect([images.length, usage.cost, images[0]!.seed]).toEqual([1, 0.04, 9]);
  });

  test.each([
    ['no data', { created: 1 }],
    ['an empty list', { data: [] }],
    ['an address', { data: [{ url: 'https://images.example/1.png' }] }],
    ['an SVG', { data: [{ b64_json: Buffer.from('<svg/>').toString('base64') }] }],
    [
      'an SVG that says it is a PNG',
      { data: [{ b64_json: `data:image/png;base64,${btoa(`<svg>${' '.repeat(60)}`)}` }] },
    ],
    ['an icon of macOS', { data: [{ b64_json: btoa(`icns${'\0'.repeat(60)}`) }] }],
    ['base64 with line ends', { data: [{ b64_json: b64.replace(/.{76}/g, '$&\n') }] }],
    ['base64 with spaces', { data: [{ b64_json: `${b64.slice(0, 80)}    ${b64.slice(80)}` }] }],
    ['base64 with a quote in it', { data: [{ b64_json: `${b64}","x":"` }] }],
    ['an error', { error: { message: 'out of paint' } }],
  ])('%s is free', async (_what, body) => {
    provider.answer((_request, response) => json(response, 200, body));
    const before = await spine.balance();
    const response = await generate(ask());
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { code: 'provider_unavailable' } });
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });

  test('many items that are no images are not all looked at', async () => {
    provider.answer(answerWith(...Array.from({ length: 18 }, () => ({})), { b64_json: b64 }));
    expect((await generate(ask())).status).toBe(500);
    // Of another offer: the failed one rests for a moment.
    expect((await painted(ask({ model: 'test/free', n: 3 }))).images.length).toBe(1);
  });

  test('texts that are long where none belongs are left out', async () => {
    const long = 'x'.repeat(3_000);
    const raw = { size: long, usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3, [long]: 4 } };
    provider.answer((_request, response) => json(response, 200, { data: [{ b64_json: b64 }], created: 1, ...raw }));
    expect((await painted(ask())).provider_metadata.raw).toEqual({
      created: 1,
      usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    });
  });

  test('a refusal of the request is told, and free', async () => {
    provider.answer((_request, response) =>
      json(response, 400, { error: { message: 'Your request was rejected by the safety system.' } }),
    );
    const before = await spine.balance();
    const response = await generate(ask());
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: 'invalid_request', message: expect.stringContaining('safety system') as string },
    });
    expect(await spine.balance()).toEqual(before);
  });

  test('a provider that refuses response_format is asked without it', async () => {
    provider.answer((request, response) => {
      if ('response_format' in request.body)
        return json(response, 400, { error: { message: "Unknown parameter: 'response_format'." } });
      return paintAsAsked(request, response);
    });
    await painted(ask());
    expect(sent()).not.toHaveProperty('response_format');
  });

  test('a reply that is too large costs what was ordered, because it was made, and its provider is not blamed', async () => {
    provider.answer(answerWith({ b64_json: 'A'.repeat(5 * 1024 * 1024) }));
    const response = await generate(ask());
    expect([response.status, response.headers.get('x-cost-usd')]).toEqual([422, expect.not.stringMatching(/^[0.]*$/)]);
    expect(await response.text()).toContain('larger than 4194304 bytes');
    const record = await spine.generation(response.headers.get('x-generation-id'));
    expect(record).toMatchObject({ outcome: 'cut', finish_reason: 'too_large', estimated: true, flags: [] });
  });

  test('a large image passes unchanged', async () => {
    const large = Buffer.concat([png(64, 64), Buffer.alloc(2_000_001, 7)]);
    provider.answer(answerWith({ b64_json: large.toString('base64'), revised_prompt: 'A "better"\ntollgate' }));
    const { images } = await painted(ask());
    expect(bytesOf(images[0]!.data_url).equals(large)).toBe(true);
    expect(images[0]!.revised_prompt).toBe('A "better"\ntollgate');
    const file = await generate(ask({ output_type: 'file' }));
    expect(Buffer.from(await file.arrayBuffer()).equals(large)).toBe(true);
  });
});

test('a repeat with its key is answered the same, and runs and costs once', async () => {
  const headers = { 'idempotency-key': 'images-once' };
  const first = await (await generate(ask(), headers)).text();
  const [asked, before] = [provider.requests.length, await spine.balance()];
  const again = await generate(ask(), headers);
  expect(await again.text()).toBe(first);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect([provider.requests.length, await spine.balance()]).toEqual([asked, before]);
  expect((await generate(ask({ prompt: 'Another' }), headers)).status).toBe(409);
  expect((await spine.post('/images/generations', ask(), headers)).status).toBe(409);
});

test('a cap that is lower than the price is refused, one that is not is kept to', async () => {
  expect(await refusal(ask({ n: 2 }), { 'x-max-cost': '0.079' })).toMatchObject({ status: 422, param: 'x-max-cost' });
  expect(await refusal(ask({ n: 2, max_cost: 0.079 }))).toMatchObject({ status: 422, param: 'max_cost' });
  expect((await painted(ask({ n: 2 }), { 'x-max-cost': '0.08' })).usage.cost).toBe(0.08);
  expect(await refusal(ask({ provider: { max_price: { image: 0.03 } } }))).toMatchObject({
    status: 422,
    param: 'provider.max_price.image',
  });
});

test('a caller without enough money is refused with 402 before anything is sent', async () => {
  const { key } = await spine.tenant('poor', '0.03');
  const { status, code, message } = await refusal(ask(), { authorization: `Bearer ${key}` });
  expect([status, code]).toEqual([402, 'insufficient_balance']);
  expect(message).toMatch(
    /^Insufficient balance for estimated cost: 0\.04 USDC\. 0\.03 USDC are available\. Ask the operator/,
  );
});

test('a service without a price needs no money', async () => {
  const { key } = await spine.tenant('nobody', '0');
  expect((await generate(ask({ model: 'test/free' }), { authorization: `Bearer ${key}` })).status).toBe(200);
});

test('a receipt is signed where it is asked for', async () => {
  const response = await generate(ask(), { 'x-receipt': '1' });
  expect(response.headers.get('x-receipt')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
});

test('JSON-RPC has the same as images/generate', async () => {
  const response = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'images/generate', params: ask() });
  const { result } = (await response.json()) as { result: Images & { _meta: Record<string, unknown> } };
  expect(result.images[0]!.data_url).toMatch(/^data:image\/png;base64,/);
  expect(result._meta).toMatchObject({ 'tollgate/generation': { cost: '0.04', currency: 'USDC' } });
  const refused = await spine.post('/rpc', {
    jsonrpc: '2.0',
    id: 1,
    method: 'images/generate',
    params: ask({ n: 99 }),
  });
  expect(await refused.json()).toMatchObject({ error: { code: -32602, data: { param: 'n' } } });
});

test('the key of the provider is in no answer', async () => {
  provider.answer((request, response) =>
    json(response, 400, { error: { message: `Bad: ${request.headers.authorization}` } }),
  );
  const response = await generate(ask());
  expect(await response.text()).not.toContain('image-secret-canary');
});
