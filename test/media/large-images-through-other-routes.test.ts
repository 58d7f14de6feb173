import { randomBytes, randomUUID } from 'node:crypto';
import { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { events, UNHURRIED } from '../support/spine.ts';
import { answerWith, imageBlock, png, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// An image that is larger than a reply of MCP may be: it comes whole at every route, and in small writes, as a large
// one holds up every stream of the process.

const MIB = 1024 * 1024;
const base64 = (bytes: number) => Buffer.concat([png(64, 64), randomBytes(bytes)]).toString('base64');
const large = base64(1.5 * MIB);
const url = `data:image/png;base64,${large}`;
const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}[media]\nfree_bytes_min = 1\n[upstream]\nreply_bytes_max = ${MIB}\n${imageBlock({ url: provider.url })}`,
}));
let largest = 0;
beforeEach(() => {
  largest = 0;
  provider.answer(answerWith({ b64_json: large }));
  for (const name of ['write', 'end'] as const) {
    const native = ServerResponse.prototype[name] as (this: ServerResponse, ...given: unknown[]) => unknown;
    vi.spyOn(ServerResponse.prototype, name).mockImplementation(function written(
      this: ServerResponse,
      ...given: unknown[]
    ) {
      const [bytes] = given;
      // The provider's own are none of the gateway.
      if (this.req.url?.startsWith('/v1/') === false && (typeof bytes === 'string' || Buffer.isBuffer(bytes)))
        largest = Math.max(largest, bytes.length);
      return native.apply(this, given);
    } as never);
  }
});
afterEach(async () => {
  vi.restoreAllMocks();
  expect(await spine.faults()).toEqual([]);
});

const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect([response.status, response.status === 200 ? '' : text]).toEqual([200, '']);
  const { headers: head } = response;
  if (head.has('content-length')) expect(Number(head.get('content-length'))).toBe(Buffer.byteLength(text));
  return { text, headers: head };
};
/** Asks, and checks what holds for each answer: what it costs, and that it was written in slices. */
const paid = async <T>(ask: () => Promise<T>): Promise<T> => {
  const { available } = await spine.balance();
  const answer = await ask();
  await spine.quiet();
  expect(available - (await spine.balance()).available).toBe(40_000n);
  expect(largest).toBeGreaterThan(0);
  expect(largest).toBeLessThanOrEqual(256 * 1024);
  return answer;
};

const chat = { model: 'image/test/paint', messages: [{ role: 'user', content: 'A tollgate' }] };

test('a chat', async () => {
  const { text } = await paid(() => post('/api/v1/chat/completions', chat));
  const { choices, usage } = JSON.parse(text) as { choices: { message: object }[]; usage: object };
  expect(choices[0]!.message).toEqual({
    role: 'assistant',
    content: '',
    images: [{ type: 'image_url', image_url: { url } }],
  });
  expect(usage).toMatchObject({ cost: 0.04 });
});

test('a stream of chat', async () => {
  const { text } = await paid(() => post('/api/v1/chat/completions', { ...chat, stream: true }));
  const chunks = events(text) as { choices: { delta: { images?: object[] } }[]; usage?: object }[];
  expect(chunks.flatMap(({ choices }) => choices?.[0]?.delta.images ?? [])).toEqual([
    { type: 'image_url', image_url: { url } },
  ]);
  expect(chunks.find(({ usage }) => usage)?.usage).toMatchObject({ cost: 0.04 });
});

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 'é"1', method, params });
const call = rpc('tools/call', { name: 'generate_image', arguments: { prompt: 'A tollgate' } });

test('a tool', async () => {
  const { text } = await paid(() => post('/mcp/image/test/paint', call));
  const { id, result } = JSON.parse(text) as { id: string; result: { content: object[]; _meta: object } };
  expect([id, result.content]).toEqual(['é"1', [{ type: 'image', data: large, mimeType: 'image/png' }]]);
  expect(result._meta).toMatchObject({ 'tollgate/generation': { cost: '0.04' } });
});

const sent = (method: string) => {
  const message = { messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'A tollgate' }] };
  return rpc(method, { message });
};
const filePart = { kind: 'file', file: { bytes: large, mimeType: 'image/png', name: 'image_0.png' } };

test('an agent, in one piece', async () => {
  const message = sent('message/send');
  const { text } = await paid(() => post('/a2a/image/test/paint', message));
  expect(JSON.parse(text)).toMatchObject({ id: 'é"1', result: { kind: 'message', parts: [filePart] } });
});

test('an agent, as a stream', async () => {
  const { text } = await paid(() => post('/a2a/image/test/paint', sent('message/stream')));
  const said = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []));
  const results = (said as { result: { kind: string; artifact?: { parts: object[] } } }[]).map(({ result }) => result);
  expect(results.map(({ kind }) => kind)).toEqual(['task', 'artifact-update', 'status-update']);
  expect(results[1]!.artifact!.parts).toEqual([filePart]);
});

const translated = [
  ['/api/v1/messages', { model: chat.model, max_tokens: 9, messages: chat.messages }],
  ['/api/v1/responses', { model: chat.model, input: 'A tollgate' }],
  ['/api/v1/completions', { model: chat.model, prompt: 'A tollgate' }],
] as const;

test.each(translated)('%s has it as a link, streamed and not', async (path, body) => {
  for (const stream of [false, true]) {
    const { text } = await post(path, { ...body, stream });
    expect(text.length).toBeGreaterThan(2 * MIB);
    expect(text).toContain('![image](data:image/png;base64,iVBOR');
    expect(text).not.toContain('large-');
  }
});

const endpoints = [['/api/v1/chat/completions', chat], ...translated] as const;
const inBothForms = endpoints.flatMap(([path, body]) => [false, true].map((stream) => [path, stream, body] as const));

test.each(inBothForms)('%s repeats it as it was (stream: %s)', async (path, stream, request) => {
  const key = { 'idempotency-key': `large ${path} ${stream}` };
  const first = await post(path, { ...request, stream }, key);
  const asked = provider.requests.length;
  largest = 0;
  const again = await post(path, { ...request, stream }, key);
  expect([again.text === first.text, again.headers.get('idempotent-replayed')]).toEqual([true, 'true']);
  expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
  expect(largest).toBeLessThanOrEqual(256 * 1024);
  const headers = { ...key, authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' };
  for (const [status, body] of [
    [409, { ...request, stream, temperature: 0.5 }],
    [200, { ...request, stream, model: 'test/model' }],
  ] as const) {
    const more = status === 200 ? { 'idempotency-key': `small ${path} ${stream}` } : {};
    const other = await spine.post(path.slice('/api/v1'.length), body, { ...headers, ...more });
    expect([other.status, await other.text()]).toEqual([status, expect.any(String)]);
  }
  expect(provider.requests.length).toBe(asked);
});

test.each([
  ['/mcp/image/test/paint', () => call],
  ['/a2a/image/test/paint', () => sent('message/send')],
])('%s repeats it under the id of whoever asks', async (path, body) => {
  const key = { 'idempotency-key': path };
  const request = body();
  const first = await post(path, request, key);
  const [asked, { available }] = [provider.requests.length, await spine.balance()];
  largest = 0;
  const again = await post(path, { ...request, id: 7 }, key);
  expect(again.text === first.text.replace('"id":"é\\"1"', '"id":7')).toBe(true);
  expect(largest).toBeLessThanOrEqual(256 * 1024);
  expect([provider.requests.length, (await spine.balance()).available]).toEqual([asked, available]);
});

test('the repeat of a stream of an agent shows its task, with the image', async () => {
  const request = sent('message/stream');
  await post('/a2a/image/test/paint', request);
  const asked = provider.requests.length;
  const { text } = await post('/a2a/image/test/paint', request);
  const said = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []));
  expect(said).toMatchObject([
    { id: 'é"1', result: { kind: 'task', status: { state: 'completed' }, artifacts: [{ parts: [filePart] }] } },
  ]);
  expect(said[0]).toMatchObject({ result: { metadata: { 'tollgate/generation': { cost: '0.04' } } } });
  expect(provider.requests.length).toBe(asked);
  // The task itself has no room for the image, so it says how to get it.
  const { id } = (said as [{ result: { id: string } }])[0].result;
  const shown = await post('/a2a/image/test/paint', rpc('tasks/get', { id }));
  expect(JSON.parse(shown.text)).toMatchObject({
    result: {
      id,
      status: {
        state: 'completed',
        message: { parts: [{ text: expect.stringContaining('with the same messageId') }] },
      },
      metadata: { 'tollgate/generation': { cost: '0.04' } },
    },
  });
});

test('what is small enough to be kept is repeated as it was', async () => {
  provider.answer(answerWith({ b64_json: base64(512 * 1024) }));
  for (const [path, body, replayed] of [
    ['/api/v1/chat/completions', chat, true],
    ['/mcp/image/test/paint', call, true],
    ['/a2a/image/test/paint', sent('message/send'), false],
  ] as const) {
    const key = { 'idempotency-key': path };
    const first = await post(path, body, key);
    const asked = provider.requests.length;
    const again = await post(path, body, key);
    expect([again.text === first.text, provider.requests.length]).toEqual([true, asked]);
    expect(again.headers.get('idempotent-replayed')).toBe(replayed ? 'true' : null);
  }
});
