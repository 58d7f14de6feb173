import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  completion,
  startTranscripts,
  type TranscriptUpstream,
} from '../openai/translated/support/transcript-upstream.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Without a session, calls with the same instructions and tools go to the provider that has them in its cache.

const NAMES = ['A', 'B', 'C', 'D'] as const;
const upstreams: TranscriptUpstream[] = [];
let cached = 800;
let claims = true;
let spine: Spine;

const usage = () => ({
  prompt_tokens: 1_000,
  completion_tokens: 10,
  total_tokens: 1_010,
  prompt_tokens_details: { cached_tokens: cached },
});

beforeAll(async () => {
  for (const _ of NAMES) {
    const upstream = await startTranscripts();
    upstream.answer = () => ({ body: completion({ content: 'Hi' }, 'stop', claims ? usage() : {}) });
    upstreams.push(upstream);
  }
  const blocks = (name: string, pricing: string, providers: readonly string[] = NAMES) =>
    providers
      .map((provider, index) =>
        modelBlock({ name, provider, url: upstreams[index]!.url, prompt: 2, completion: 8, pricing }),
      )
      .join('');
  spine = await startSpine({
    toml:
      UNHURRIED +
      blocks('test/even', 'input_cache_read = 0.5') +
      blocks('test/flat', '') +
      blocks('test/measured', 'input_cache_read = 0.5', ['A']),
  });
});
afterAll(async () => {
  await spine.stop();
  for (const upstream of upstreams) await upstream.stop();
});
afterEach(async () => {
  cached = 800;
  expect(await spine.faults()).toEqual([]);
});

const SYSTEM = 'You are a careful librarian of old maps. '.repeat(120);
const tool = (description: string) => ({
  type: 'function',
  function: { name: 'find_map', description, parameters: { type: 'object', properties: {} } },
});

async function serve(path: string, body: object, headers: Record<string, string> = {}): Promise<string> {
  const response = await spine.post(path, { model: 'test/even', ...body }, headers);
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get('x-provider')!;
}

const chat = (system: string, user: string, more: object = {}) => ({
  messages: [
    { role: 'system', content: system },
    { role: 'user', content: user },
  ],
  ...more,
});

const spread = async (count: number, body: (index: number) => object, headers?: Record<string, string>) => {
  const seen = new Set<string>();
  for (let index = 0; index < count; index++) seen.add(await serve('/chat/completions', body(index), headers));
  return seen;
};

describe('calls with the same long instructions', () => {
  test('go to the provider that served the first, on every chat wire', async () => {
    const first = await serve('/chat/completions', chat(SYSTEM, 'first'));
    for (let round = 0; round < 4; round++) {
      expect(await serve('/chat/completions', chat(SYSTEM, `question ${round}`))).toBe(first);
      expect(
        await serve('/messages', {
          system: SYSTEM,
          max_tokens: 20,
          messages: [{ role: 'user', content: `question ${round}` }],
        }),
      ).toBe(first);
      expect(await serve('/responses', { instructions: SYSTEM, input: `question ${round}` })).toBe(first);
    }
    const google = await fetch(`${spine.origin}/v1beta/models/test/even:generateContent`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-goog-api-key': spine.key },
      body: JSON.stringify({
        systemInstruction: { parts: [{ text: SYSTEM }] },
        contents: [{ role: 'user', parts: [{ text: 'question' }] }],
      }),
    });
    await google.text();
    expect(google.headers.get('x-provider')).toBe(first);
  });

  test('but other tools are spread', async () => {
    const seen = await spread(30, (index) =>
      chat(SYSTEM, 'question', { tools: [tool(`Finds map number ${index}. `.repeat(20))] }),
    );
    expect(seen.size).toBeGreaterThan(1);
  });

  test('of other accounts are other calls', async () => {
    await serve('/chat/completions', chat(SYSTEM, 'mine'));
    const seen = new Set<string>();
    for (let account = 0; account < 16; account++) {
      const { key } = await spine.tenant(`reader-${account}`, '1');
      seen.add(await serve('/chat/completions', chat(SYSTEM, 'mine'), { authorization: `Bearer ${key}` }));
    }
    expect(seen.size).toBeGreaterThan(1);
  });

  test('are spread where replies have no cached tokens', async () => {
    cached = 0;
    const seen = await spread(40, () => chat(`${SYSTEM} Nobody caches this.`, 'question'));
    expect(seen.size).toBeGreaterThan(1);
  });
});

test('long tools alone are a beginning, too', async () => {
  const tools = [tool('Finds a map by its maker, its year and its place. '.repeat(100))];
  const seen = await spread(12, (index) => ({ messages: [{ role: 'user', content: `question ${index}` }], tools }));
  expect(seen.size).toBe(1);
});

test('short instructions, and long prompts without any, are spread', async () => {
  expect((await spread(40, (index) => chat('Be brief.', `${SYSTEM} ${index}`))).size).toBeGreaterThan(1);
  expect((await spread(40, () => ({ messages: [{ role: 'user', content: SYSTEM }] }))).size).toBeGreaterThan(1);
});

interface Listed {
  readonly provider_name: string;
  readonly cache_hit_rate: number | null;
  readonly effective_prompt_price: number | null;
}

const endpointsOf = async (model: string): Promise<readonly Listed[]> => {
  const { data } = (await (await spine.get(`/models/${model}/endpoints`)).json()) as {
    data: { endpoints: readonly Listed[] };
  };
  return data.endpoints;
};

test('the hit rate and the effective price of an offer are those of what was charged', async () => {
  for (const tokens of [800, 0, 0, 0]) {
    cached = tokens;
    await serve('/chat/completions', chat(SYSTEM, 'measured', { model: 'test/measured' }));
  }
  // The usage of this one is measured here, so it says nothing of a cache.
  claims = false;
  await serve('/chat/completions', chat(SYSTEM, 'measured', { model: 'test/measured' }));
  claims = true;
  // 800 of 4,000 tokens for 0.5, and 3,200 for 2: 6,800 micro-USD.
  expect(await endpointsOf('test/measured')).toMatchObject([{ cache_hit_rate: 0.2, effective_prompt_price: 1.7 }]);
  const { data } = (await (await spine.get('/services/model/test/measured')).json()) as {
    data: { providers: readonly Listed[] };
  };
  expect(data.providers).toMatchObject([{ cache_hit_rate: 0.2, effective_prompt_price: 1.7 }]);
});

test('an offer whose cached tokens cost as much as others has no hit rate', async () => {
  await spread(4, () => chat(SYSTEM, 'flat', { model: 'test/flat' }));
  for (const each of await endpointsOf('test/flat'))
    expect(each).toMatchObject({ cache_hit_rate: null, effective_prompt_price: null });
});
