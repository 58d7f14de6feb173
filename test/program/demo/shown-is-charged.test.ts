import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type Gateway } from '../../support/gateway.ts';
import { rerankBlock, startReranker, type Reranker } from '../../openai/rerank/reranker.ts';

// For each kind of call the quote, the cost in the answer, the record with its lines, and what left the balance agree.

interface Json {
  readonly [name: string]: unknown;
}
interface Line {
  readonly meter: string;
  readonly units: number;
  readonly usd_per_unit: string;
}
interface Called {
  readonly id: string;
  readonly state: string;
  readonly failed: boolean;
  readonly price: string | null;
  readonly cost_micro_usdc: number;
  readonly run_cost: number;
  readonly cost_lines?: readonly Line[];
  readonly children: readonly Called[];
}

let gateway: Gateway;
let reranker: Reranker;
beforeAll(async () => {
  reranker = await startReranker();
  const block = { url: reranker.url, provider: 'Acme' } as const;
  gateway = await startGateway({
    command: 'start',
    env: { TEST_UPSTREAM_KEY: 'k' },
    toml: [
      rerankBlock({ ...block, name: 'acme/sorter', pricing: 'per_call = 0.002' }),
      rerankBlock({ ...block, name: 'acme/judge', modality: 'moderation', pricing: 'per_call = 0.0005' }),
    ].join('\n'),
    timeoutMs: 100_000,
  });
  reranker.answer = ({ input }) =>
    input === undefined
      ? {}
      : { body: { id: 'm1', model: 'judge', results: [{ flagged: false, categories: {}, category_scores: {} }] } };
});
afterAll(async () => {
  await gateway?.stop();
  await reranker?.stop();
});

const ask = (path: string, body: Json | FormData, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${gateway.baseUrl}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.apiKey!}`,
      ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
const read = async <T>(path: string): Promise<T> =>
  (await (
    await fetch(`${gateway.baseUrl}/api/v1${path}`, { headers: { authorization: `Bearer ${gateway.apiKey!}` } })
  ).json()) as T;
const balance = async () => (await read<{ balance_micro_usdc: number }>('/session/balance')).balance_micro_usdc;
const micro = (usd: number | string) => Math.round(Number(usd) * 1e6);
const user = (content: string) => [{ role: 'user', content }];

/** The cost that an answer says, wherever its wire has it. undefined if it has none. */
function costIn(answer: Json): number | string | undefined {
  const at = (value: unknown, ...names: readonly string[]): unknown =>
    names.reduce<unknown>((inner, name) => (inner as Json | undefined)?.[name], value);
  return (at(answer, 'usage', 'cost') ??
    at(answer, 'result', '_meta', 'tollgate/generation', 'cost') ??
    at(answer, 'result', 'metadata', 'tollgate/generation', 'cost')) as number | string | undefined;
}

interface Case {
  readonly path: string;
  readonly body: Json;
  /** The body of the quote. */
  readonly quote?: Json;
  /** Whether the answer is a file, which has no room for a cost. */
  readonly file?: boolean;
}
const message = (id: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { messageId: id, role: 'user', parts: [{ kind: 'text', text: 'Roll 2d6' }] } },
});
const rolls = { name: 'roll_dice', arguments: { dice: '2d6' } };
const chat = { model: 'demo/chat', messages: user('Hi'), max_tokens: 20 };
const embedding = { model: 'demo/embedding', input: 'a short text' };
const speech = { model: 'demo/speech', input: 'Hello world', voice: 'alloy' };
const sorted = { model: 'acme/sorter', query: 'a b', documents: ['a', 'b'] };
const image = { model: 'demo/image', prompt: 'A tollgate', width: 96, height: 64, n: 2 };
const CASES: Readonly<Record<string, Case>> = {
  chat: { path: '/api/v1/chat/completions', body: chat, quote: { primitive: 'model', ...chat } },
  messages: { path: '/api/v1/messages', body: chat },
  responses: { path: '/api/v1/responses', body: { model: 'demo/chat', input: 'Hi', max_output_tokens: 20 } },
  'a chat with tools of the gateway': {
    path: '/api/v1/chat/completions',
    body: {
      ...chat,
      messages: user('Roll 2d6'),
      max_tokens: 200,
      tools: [{ type: 'mcp', service: 'demo/tools' }],
    },
  },
  embeddings: { path: '/api/v1/embeddings', body: embedding, quote: { primitive: 'model', ...embedding } },
  speech: { path: '/api/v1/audio/speech', body: speech, quote: { primitive: 'model', ...speech }, file: true },
  rerank: { path: '/api/v1/rerank', body: sorted, quote: { primitive: 'model', ...sorted } },
  moderation: { path: '/api/v1/moderations', body: { model: 'acme/judge', input: 'harmless' } },
  'a tool': {
    path: '/mcp/demo/tools',
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: rolls },
    quote: { primitive: 'tool', tool: 'demo/tools/roll_dice', arguments: rolls.arguments },
  },
  'a tool by chat': {
    path: '/api/v1/chat/completions',
    body: { model: 'mcp/demo/tools/roll_dice', messages: user('{"dice":"2d6"}') },
  },
  'an agent': { path: '/a2a/demo/agent', body: message('m-1'), quote: { primitive: 'agent', agent: 'demo/agent' } },
  'an agent by chat': {
    path: '/api/v1/chat/completions',
    body: { model: 'a2a/demo/agent', messages: user('Roll 2d6') },
    quote: { primitive: 'agent', agent: 'demo/agent' },
  },
  images: { path: '/api/v1/image/generate', body: image, quote: { primitive: 'image', ...image } },
};

const total = ({ cost_micro_usdc: own, children }: Called): number =>
  children.reduce((sum, child) => sum + total(child), own);

/** Checks a settled call against the money that left the balance. */
async function checkRecord(id: string, left: number): Promise<void> {
  const { data: call } = await read<{ data: Called }>(`/generation?id=${id}`);
  expect([micro(call.run_cost), total(call), call.failed]).toEqual([left, left, false]);
  await checkLines(call);
}

/** Checks the lines of a charge against the price that it names. A run of several calls is charged by each of them. */
async function checkLines(call: Called): Promise<void> {
  if (call.state === 'released') return expect([call.price, call.cost_lines]).toEqual([null, []]);
  const { data: price } = await read<{ data: { id: string; rates: Record<string, string> } }>(`/prices/${call.price}`);
  expect(price.id).toBe(call.price);
  const lines = call.cost_lines!;
  for (const { meter, usd_per_unit: usd } of lines) expect(usd, meter).toBe(price.rates[meter]);
  // In 10^-12 USD, so that no float is rounded.
  const pico = lines.reduce((sum, { units, usd_per_unit: usd }) => sum + units * Math.round(Number(usd) * 1e12), 0);
  expect(Math.ceil(pico / 1e6)).toBe(call.cost_micro_usdc);
}

async function quoted(quote: Json): Promise<{ readonly most: number; readonly exact: boolean }> {
  const answer = (await (await ask('/api/v1/quotes', quote)).json()) as Json;
  expect(answer['valid'], JSON.stringify(answer)).toBe(true);
  return { most: answer['price_micro_usdc'] as number, exact: answer['exact'] as boolean };
}

test.each(Object.entries(CASES))('%s', async (_kind, { path, body, quote, file = false }) => {
  const before = await balance();
  const price = quote && (await quoted(quote));
  const answer = await ask(path, body);
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  const id = answer.headers.get('x-generation-id')!;
  await expect.poll(async () => (await read<{ data: Called }>(`/generation?id=${id}`)).data.state).not.toBe('held');
  const left = before - (await balance());
  expect(left).toBeGreaterThan(0);
  if (!file)
    expect([costIn(JSON.parse(text) as Json), answer.headers.get('x-cost-usd')].map((usd) => micro(usd!))).toEqual([
      left,
      left,
    ]);
  await checkRecord(id, left);
  if (price?.exact === true) expect(price.most).toBe(left);
  if (price) expect(price.most).toBeGreaterThanOrEqual(left);
});

test('a transcription costs at most what its length is quoted at', async () => {
  const spoken = await ask('/api/v1/audio/speech', { ...speech, response_format: 'wav' });
  const sound = new Blob([await spoken.arrayBuffer()], { type: 'audio/wav' });
  const before = await balance();
  const form = new FormData();
  form.set('model', 'demo/transcription');
  form.set('file', sound, 'hello.wav');
  const answer = await ask('/api/v1/audio/transcriptions', form);
  const { usage } = (await answer.json()) as { usage: { seconds: number } };
  const left = before - (await balance());
  expect(micro(answer.headers.get('x-cost-usd')!)).toBe(left);
  await checkRecord(answer.headers.get('x-generation-id')!, left);
  const { most } = await quoted({ primitive: 'model', model: 'demo/transcription', seconds: Math.ceil(usage.seconds) });
  expect(most).toBeGreaterThanOrEqual(left);
});

test('a video costs what was quoted, once its file is here', async () => {
  const body = { model: 'demo/video', prompt: 'A tollgate', duration: '2s' };
  const before = await balance();
  const price = await quoted({ primitive: 'video', ...body });
  const queued = await ask('/api/v1/video/queue', body);
  const { id } = (await queued.json()) as { readonly id: string };
  await expect
    .poll(async () =>
      (await ask('/api/v1/video/retrieve', { task_id: id, wait_for_final: true })).headers.get('content-type'),
    )
    .toBe('video/mp4');
  const left = before - (await balance());
  expect(price).toEqual({ most: left, exact: true });
  await checkRecord(queued.headers.get('x-generation-id')!, left);
});

test('none of it is listed as failed, and the books agree with all of it', async () => {
  const listed = async (failed: boolean) =>
    (await read<{ data: Called[] }>(`/generations?limit=100&failed=${failed}`)).data;
  expect(await listed(true)).toEqual([]);
  expect((await listed(false)).map(({ state }) => state)).toContain('released');
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
});
