import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { cohere, jina, rerankBlock, startReranker, type Reranker } from './reranker.ts';

// Documents are sorted by their relevance. A search unit, a token or both are charged by what the reply says.

const SEARCHES = 'acme/searches';
const TOKENS = 'acme/tokens';
const BOTH = 'acme/both';
const TWO = 'acme/two';
let upstream: Reranker;
let dear: Reranker;
let spine: Spine;
beforeAll(async () => {
  [upstream, dear] = await Promise.all([startReranker(), startReranker()]);
  const { url } = upstream;
  spine = await startSpine({
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${rerankBlock({ name: SEARCHES, provider: 'Cohere', url, pricing: 'per_call = 0.002', params: 'forward = ["priority"]' })}
${rerankBlock({ name: TOKENS, provider: 'Jina', url, prompt: 0.05, params: 'forward = ["return_documents"]' })}
${rerankBlock({ name: BOTH, provider: 'Both', url, prompt: 1, pricing: 'per_call = 0.001', lines: 'input_modalities = ["text", "image"]' })}
${rerankBlock({ name: TWO, provider: 'Cheap', url, prompt: 0.05 })}
${rerankBlock({ name: TWO, provider: 'Dear', url: dear.url, pricing: 'per_call = 0.01' })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([upstream.stop(), dear.stop()]);
});
beforeEach(() => {
  upstream.asked.length = 0;
  upstream.answer = () => ({ more: cohere(1) });
  dear.answer = () => ({ more: cohere(1) });
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

interface Answer {
  readonly id: string;
  readonly model: string;
  readonly provider: string;
  readonly results: readonly { index: number; relevance_score: number; document?: object }[];
  readonly meta: { readonly billed_units: { readonly search_units: number } };
  readonly usage: { readonly cost: number; readonly total_tokens: number; readonly search_units: number };
}

const QUERY = 'red apples';
const DOCUMENTS = ['green pears', 'apples that are red', 'red cars'];
const ask = (more: object = {}) => ({ model: SEARCHES, query: QUERY, documents: DOCUMENTS, ...more });
const post = (body: object, path = '/rerank', headers = {}) => spine.post(path, body, headers);
async function rerank(body: object, path?: string): Promise<Answer> {
  const response = await post(body, path);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as Answer;
}
const locked = async (id: string) => {
  const { entries } = (await spine.generation(id)) as unknown as {
    entries: { type: string; amount_micro_usdc: number }[];
  };
  return entries[0]!.amount_micro_usdc;
};

describe('a search with a price per search unit', () => {
  test('passes in the form of Cohere’s API, and its answer has the most relevant document first', async () => {
    const { id, ...answer } = await rerank(ask({ top_n: 2, max_tokens_per_doc: 100, priority: 1, unlisted: [1] }));
    expect(upstream.asked).toEqual([
      {
        path: '/v1/rerank',
        body: {
          model: 'upstream-Cohere',
          query: QUERY,
          documents: DOCUMENTS,
          top_n: 2,
          max_tokens_per_doc: 100,
          priority: 1,
        },
      },
    ]);
    expect(answer).toMatchObject({
      model: SEARCHES,
      provider: 'Cohere',
      results: [
        { index: 1, relevance_score: 1, document: { text: 'apples that are red' } },
        { index: 2, relevance_score: 0.5, document: { text: 'red cars' } },
      ],
      meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
      usage: { search_units: 1, cost: 0.002 },
    });
    expect(await spine.generation(id)).toMatchObject({
      state: 'settled',
      cost_micro_usdc: 2_000,
      usage_details: { call: 1 },
    });
  });

  test('costs what the reply says, within the lock', async () => {
    // 250 documents of 20 bytes are 3 units by their number, and none is longer than a piece.
    const documents = Array.from({ length: 250 }, (_, index) => `document number ${100 + index}`);
    upstream.answer = () => ({ more: cohere(3) });
    const three = await rerank(ask({ documents }));
    expect(three.usage.cost).toBe(0.006);
    expect(await locked(three.id)).toBe(6_000);
    upstream.answer = () => ({ more: cohere(2) });
    expect((await rerank(ask({ documents }))).usage.cost).toBe(0.004);
    upstream.answer = () => ({ more: cohere(9) });
    const nine = await rerank(ask({ documents }));
    expect(nine).toMatchObject({
      usage: { cost: 0.006, search_units: 3 },
      meta: { billed_units: { search_units: 3 } },
    });
    expect((await endpoint(SEARCHES)).flags).toEqual({ usage_implausible: 1 });
    expect((await spine.generation(nine.id)).claims).toEqual([{ meter: 'call', claimed: 9, most: 3 }]);
  });

  test('locks whole documents, also if the request cuts them: a provider may not know the field', async () => {
    // 10 bytes of the query and 2,490 of the document can be 2,500 tokens: 5 pieces of 500, for each of 100 documents.
    const documents = Array.from({ length: 100 }, () => 'x'.repeat(2_490));
    upstream.answer = () => ({ more: cohere(2) });
    const long = await rerank(ask({ documents }));
    expect(await locked(long.id)).toBe(10_000);
    expect(long.usage.cost).toBe(0.004);
    upstream.answer = () => ({ more: cohere(1) });
    const cut = await rerank(ask({ documents, max_tokens_per_doc: 400 }));
    expect(await locked(cut.id)).toBe(10_000);
    expect(cut.usage.cost).toBe(0.002);
  });

  test('shows no tokens that the provider did not report', async () => {
    upstream.answer = () => ({ more: cohere(1) });
    const { usage } = await rerank(ask());
    expect(usage).toEqual({
      search_units: 1,
      cost: 0.002,
      cost_details: expect.objectContaining({ charged_usd: '0.002' }) as object,
    });
  });

  test('without a claim it costs the units of its documents', async () => {
    upstream.answer = () => ({});
    const documents = Array.from({ length: 101 }, () => 'short');
    expect((await rerank(ask({ documents }))).usage).toMatchObject({ search_units: 2, estimated: true, cost: 0.004 });
  });
});

const endpoint = async (model: string) => {
  const { data } = (await (await spine.get(`/models/${model}/endpoints`)).json()) as {
    data: { endpoints: { flags: object; pricing: object; supported_parameters: string[] }[] };
  };
  return data.endpoints[0]!;
};

describe('a search with a price per token', () => {
  test('costs the tokens of the reply, in the form of Jina’s API', async () => {
    upstream.answer = () => ({ more: jina(40) });
    const { id, usage } = await rerank(ask({ model: TOKENS }));
    // 40 tokens at 0.05 USD per 1M are 2 micro-USD.
    expect(usage).toMatchObject({ total_tokens: 40, cost: 0.000002 });
    expect(upstream.asked[0]!.body).toMatchObject({ return_documents: false });
    expect(await spine.generation(id)).toMatchObject({ tokens_prompt: 40, usage_details: { prompt: 40, call: 1 } });
  });

  test('locks the query with each document, and no claim costs more', async () => {
    upstream.answer = () => ({ more: jina(1_000_000) });
    const { id, usage } = await rerank(ask({ model: BOTH }));
    // The query has 10 bytes and the documents 11, 19 and 8; 16 more tokens may be around each.
    const tokens = 3 * (10 + 16) + 11 + 19 + 8;
    expect(await locked(id)).toBe(tokens + 1_000);
    expect(usage).toMatchObject({ total_tokens: tokens, cost: (tokens + 1_000) / 1e6 });
  });

  test.each([
    [{}, 1],
    [{ more: jina(0) }, 2],
  ])('without a claim (%j) it costs a token for four bytes, and the provider is flagged', async (answer, flagged) => {
    upstream.answer = () => answer;
    const { usage } = await rerank(ask({ model: BOTH }));
    // Rounded up: 3 for the query, 3, 5 and 2 for the documents.
    const tokens = 3 * (3 + 16) + 3 + 5 + 2;
    expect(usage).toMatchObject({ total_tokens: tokens, estimated: true, cost: (tokens + 1_000) / 1e6 });
    expect((await endpoint(BOTH)).flags).toMatchObject({ usage_missing: flagged });
  });
});

describe('the answer', () => {
  test('has the documents of the request, whatever the provider sends, or none', async () => {
    upstream.answer = () => ({
      results: [0, 1, 2].map((index) => ({ index, relevance_score: 1 - index, document: { text: 'forged' } })),
      more: cohere(1),
    });
    const documents = ['a', { text: 'b', title: 'B' }, 'c'];
    const texts = (answer: Answer) => answer.results.map(({ document }) => document);
    expect(texts(await rerank(ask({ documents })))).toEqual([{ text: 'a' }, documents[1], { text: 'c' }]);
    expect(texts(await rerank(ask({ documents, return_documents: false })))).toEqual([undefined, undefined, undefined]);
  });

  test('at the address of Cohere’s client it has none, unless they are asked for', async () => {
    for (const at of ['/v2/rerank', '/api/v2/rerank']) {
      const send = (body: object) =>
        fetch(spine.origin + at, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${spine.key}` },
          body: JSON.stringify(body),
        }).then((response) => response.json() as Promise<Answer>);
      expect((await send(ask())).results[0]).toEqual({ index: 1, relevance_score: 1 });
      expect((await send(ask({ return_documents: true }))).results[0]).toHaveProperty('document');
    }
  });

  test('is sorted, and cut to top_n, if the provider does neither', async () => {
    upstream.answer = () => ({
      results: [0, 1, 2].map((index) => ({ index, relevance_score: index / 10 })),
      more: cohere(1),
    });
    const { results } = await rerank(ask({ top_n: 2, return_documents: false }));
    expect(results).toEqual([
      { index: 2, relevance_score: 0.2 },
      { index: 1, relevance_score: 0.1 },
    ]);
  });

  test.each([
    ['no results', { body: { object: 'list' } }],
    ['an error in place of results', { body: { error: { message: 'no' } } }],
    ['half a reply', { body: '{"results":[' }],
    ['too few results', { results: [{ index: 0, relevance_score: 1 }] }],
    ['a document twice', { results: [0, 1, 1].map((index) => ({ index, relevance_score: 1 })) }],
    ['a document that was not sent', { results: [0, 1, 3].map((index) => ({ index, relevance_score: 1 })) }],
    ['a result without a score', { results: [0, 1, 2].map((index) => ({ index })) }],
    ['a failure', { status: 500, body: { error: { message: 'boom' } } }],
  ])('%s is a failure of the provider, and free', async (_what, answer) => {
    upstream.answer = () => answer;
    const before = await spine.balance();
    const response = await post(ask());
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringMatching(/Provider Cohere failed/) },
    });
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });

  test('the words of a refusal pass', async () => {
    upstream.answer = () => ({ status: 400, body: { message: 'documents must not be empty' } });
    const response = await post(ask());
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('documents must not be empty');
  });
});

describe('routing', () => {
  test('compares the costs of the call, whatever is charged', async () => {
    upstream.answer = () => ({ more: jina(30) });
    for (let call = 0; call < 10; call++)
      expect((await rerank(ask({ model: TWO, session_id: `${call}` }))).provider).toBe('Cheap');
    expect((await rerank(ask({ model: TWO, provider: { only: ['Dear'] } }))).usage.cost).toBe(0.01);
    const capped = await post(ask({ model: TWO, provider: { only: ['Dear'] }, max_cost: 0.009 }));
    expect(capped.status).toBe(422);
    await capped.text();
  });

  test('a session stays with its provider, and so do searches without one', async () => {
    const first = await rerank(ask({ model: TWO, provider: { only: ['Dear'] } }));
    expect(first.provider).toBe('Dear');
    expect((await rerank(ask({ model: TWO }))).provider).toBe('Dear');
  });
});

describe('a request is refused', () => {
  test.each([
    [{ query: '' }, 'query'],
    [{ documents: [] }, 'documents'],
    [{ documents: ['a', 3] }, 'documents[1]'],
    [{ documents: ['a', {}] }, 'documents[1]'],
    [{ documents: 'a' }, 'documents'],
    [{ top_n: 0 }, 'top_n'],
    [{ max_tokens_per_doc: 0 }, 'max_tokens_per_doc'],
    [{ return_documents: 'yes' }, 'return_documents'],
    [{ provider: { region: 'EU' } }, 'provider.region'],
  ])('%j', async (more, param) => {
    const response = await post(ask(more));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request', param } });
  });

  test('for a model that does something else, with where it is called', async () => {
    const chatModel = await post(ask({ model: 'test/model' }));
    expect(chatModel.status).toBe(422);
    expect(await chatModel.text()).toContain('test/model sorts no documents. Call it at /chat/completions');
    const chat = await post({ model: SEARCHES, messages: [{ role: 'user', content: 'hi' }] }, '/chat/completions');
    expect(chat.status).toBe(422);
    expect(await chat.text()).toContain(`${SEARCHES} sorts documents. Call it at /rerank`);
  });

  test('with pictures, for a model that takes none', async () => {
    const documents = [{ image: 'data:image/png;base64,AAAA' }, 'a', 'b'];
    expect((await post(ask({ documents }))).status).toBe(422);
    expect((await rerank(ask({ documents, model: BOTH }))).results).toHaveLength(3);
  });
});

test('a model is listed by its kind, with its price, and not among chat models', async () => {
  const list = async (query: string) =>
    ((await (await spine.get(`/models${query}`)).json()) as { data: { id: string }[] }).data.map(({ id }) => id);
  expect(await list('')).not.toContain(SEARCHES);
  expect((await list('?output_modalities=rerank')).toSorted()).toEqual([BOTH, SEARCHES, TOKENS, TWO].toSorted());
  expect(await endpoint(SEARCHES)).toMatchObject({
    pricing: { prompt: '0', request: '0.002' },
    supported_parameters: ['top_n', 'max_tokens_per_doc', 'return_documents', 'priority'],
  });
});

test('a repeat of a request is answered once', async () => {
  const key = { 'idempotency-key': 'rerank-1' };
  const first = await (await post(ask(), '/rerank', key)).text();
  const again = await post(ask(), '/rerank', key);
  expect(await again.text()).toBe(first);
  expect(upstream.asked).toHaveLength(1);
});

test('a picture at a private address is refused: the provider would fetch it from within its own network', async () => {
  const response = await post(ask({ model: BOTH, documents: ['a', { image: 'https://10.1.2.3/a.png' }] }));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('documents[1].image must name a host of the public internet');
  expect(upstream.asked).toHaveLength(0);
});

test('a quote names the most that a search costs', async () => {
  const quote = async (more: object = {}) => (await post({ primitive: 'model', ...ask(more) }, '/quotes')).json();
  expect(await quote()).toMatchObject({ price_usd: 0.002, exact: true });
  // The provider may count fewer search units than are locked.
  expect(await quote({ documents: Array.from({ length: 101 }, () => 'a') })).toMatchObject({
    price_usd: 0.004,
    exact: false,
  });
});

test('a provider that dials in sells searches', async () => {
  const proxy = await dialIn({
    router: spine.origin,
    services: rerankBlock({ name: 'far/sorter', provider: 'Far', url: upstream.url, pricing: 'per_call = 0.003' }),
  });
  try {
    const { id, usage } = await rerank(ask({ model: 'far/sorter' }));
    expect(usage.cost).toBe(0.003);
    expect(await spine.generation(id)).toMatchObject({ provider: proxy.id, cost_micro_usdc: 3_000 });
  } finally {
    await proxy.close();
  }
});
