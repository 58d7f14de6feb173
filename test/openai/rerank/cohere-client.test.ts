import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';
import { cohere, rerankBlock, startReranker, type Reranker } from './reranker.ts';

// Cohere's client as it is on npm, with the gateway's address and a key of the gateway.

interface Ranked {
  readonly results: readonly { readonly index: number; readonly relevanceScore: number }[];
  readonly meta: { readonly billedUnits: { readonly searchUnits: number } };
}
interface Search {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  readonly topN?: number;
  readonly returnDocuments?: boolean;
}
interface Client {
  rerank(search: Search): Promise<Ranked & { readonly results: readonly { readonly document?: { text: string } }[] }>;
}
interface Cohere {
  readonly CohereClient: new (options: { token: string; environment: string }) => Client;
  readonly CohereClientV2: new (options: { token: string; environment: string }) => Client;
}

const MODEL = 'acme/searches';
let upstream: Reranker;
let spine: Spine;
let api: Cohere;
beforeAll(async () => {
  const folder = installStranger('cohere');
  api = createRequire(join(folder, 'node_modules', 'none.js'))('cohere-ai') as Cohere;
  upstream = await startReranker();
  upstream.answer = () => ({ more: cohere(1) });
  spine = await startSpine({
    toml: UNHURRIED + rerankBlock({ name: MODEL, provider: 'Cohere', url: upstream.url, pricing: 'per_call = 0.002' }),
  });
}, 300_000);
afterAll(async () => {
  await spine.stop();
  await upstream.stop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const SEARCH = { model: MODEL, query: 'red apples', documents: ['green pears', 'red apples'], topN: 1 };
const options = () => ({ token: spine.key, environment: spine.origin });

test('version 2 searches, and pays for one search unit', async () => {
  const before = await spine.balance();
  const { results, meta } = await new api.CohereClientV2(options()).rerank(SEARCH);
  expect(results).toEqual([{ index: 1, relevanceScore: 1 }]);
  expect(meta.billedUnits.searchUnits).toBe(1);
  await spine.quiet();
  expect(before.available - (await spine.balance()).available).toBe(2_000n);
});

test('version 1 searches, with the documents', async () => {
  const { results, meta } = await new api.CohereClient(options()).rerank({ ...SEARCH, returnDocuments: true });
  expect(results).toEqual([{ index: 1, relevanceScore: 1, document: { text: 'red apples' } }]);
  expect(meta.billedUnits.searchUnits).toBe(1);
});

test('it gets errors as Cohere’s: with an id and a message at the top', async () => {
  const wrong = new api.CohereClientV2({ token: 'wrong', environment: spine.origin }).rerank(SEARCH);
  await expect(wrong).rejects.toMatchObject({
    statusCode: 401,
    body: { id: expect.any(String) as string, message: expect.stringMatching(/key/i) as string },
  });
  const unknown = new api.CohereClientV2(options()).rerank({ ...SEARCH, model: 'acme/none' });
  await expect(unknown).rejects.toMatchObject({
    statusCode: 404,
    body: {
      id: expect.any(String) as string,
      message: expect.stringMatching(/^Model not found: acme\/none/) as string,
    },
  });
});

test.each([
  ['no credential', '/v2/rerank', { authorization: '' }, '{}', 401],
  ['a broken body', '/v2/rerank', {}, '{', 400],
  ['another media type', '/api/v2/rerank', { 'content-type': 'text/xml' }, '<a/>', 400],
  ['a path below', '/v2/rerank/none', {}, '{}', 404],
])('%s is refused in the form of Cohere’s API', async (_what, path, headers, body, status) => {
  const reply = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
    body,
  });
  const { id, message, error, ...more } = (await reply.json()) as Record<string, unknown>;
  expect([reply.status, id, typeof message, error, more]).toEqual([
    status,
    reply.headers.get('x-request-id'),
    'string',
    undefined,
    {},
  ]);
});

test('a search without money gets the terms of a payment beside the message', async () => {
  const { key } = await spine.tenant('poor', '0.000001');
  const asked = new api.CohereClientV2({ token: key, environment: spine.origin }).rerank(SEARCH);
  await expect(asked).rejects.toMatchObject({
    statusCode: 402,
    body: { message: expect.stringMatching(/^Insufficient balance/) as string, x402Version: 2 },
  });
});
