import { afterEach, beforeEach, expect, test } from 'vitest';
import { events, UNHURRIED } from '../support/spine.ts';
import { startVideoProvider, videoBlock } from './support/video-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// A video model as a chat model, as an MCP tool and as an agent. Each answers once the file is here.

const provider = ofFile(startVideoProvider, (one) => one.close());
const spine = spineOfFile(() => ({
  // It tells its own address.
  mode: 'development',
  toml: `${UNHURRIED}[upstream]\ncooldown_ms = 1\n[media]\nfree_bytes_min = 0\n${videoBlock({ url: provider.url })}`,
}));
beforeEach(() => provider.begin(() => ({})));
afterEach(async () => expect(await spine.faults()).toEqual([]));

const COST = 450_000n;
const chat = (more: object = {}) =>
  spine.post('/chat/completions', {
    model: 'video/test/film',
    messages: [{ role: 'user', content: 'A tollgate' }],
    ...more,
  });
const mcp = async (path: string, method: string, params: object) => {
  const response = await fetch(`${spine.origin}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return (await response.json()) as {
    result: { content: { type: string; uri?: string; text?: string }[]; isError?: boolean; tools?: object[] };
  };
};

async function charged<T>(run: () => Promise<T>): Promise<readonly [bigint, T]> {
  const before = await spine.balance();
  const value = await run();
  await spine.quiet();
  return [before.available - (await spine.balance()).available, value];
}

/** The file at an address that an answer gave. */
async function fileAt(url: string): Promise<Buffer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${spine.key}` } });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4']);
  return Buffer.from(await response.arrayBuffer());
}

test('a chat gets its address, as a link and in message.videos', async () => {
  const [cost, answer] = await charged(async () => (await (await chat()).json()) as Record<string, never>);
  expect(cost).toBe(COST);
  const { choices, usage } = answer as unknown as {
    choices: { message: { content: string; videos: { video_url: { url: string } }[] } }[];
    usage: { cost: number };
  };
  const { content, videos } = choices[0]!.message;
  const { url } = videos[0]!.video_url;
  expect(usage.cost).toBe(0.45);
  expect(content).toMatch(/^\[gen-[\w-]+\.mp4\]\(http/);
  expect(await fileAt(url)).toEqual(provider.last().file);
});

test('a stream says that it works, and gives it in a delta', async () => {
  provider.begin(() => ({ status: 'in_progress' }));
  const response = await chat({ stream: true });
  const done = response.text();
  provider.last().status = 'completed';
  const text = await done;
  expect(text).toContain(': queued');
  const chunks = events(text) as { choices: { delta: { videos?: { video_url: { url: string } }[] } }[] }[];
  const [video] = chunks.flatMap(({ choices }) => choices?.[0]?.delta.videos ?? []);
  expect(await fileAt(video!.video_url.url)).toEqual(provider.last().file);
});

test('a tool answers a link to it, and says its price', async () => {
  const listed = await mcp('/mcp/video/test/film', 'tools/list', {});
  expect(listed.result.tools).toMatchObject([
    { name: 'generate_video', _meta: { 'tollgate/price': { per_call: '0.05' } } },
  ]);
  const args = { prompt: 'A tollgate', duration: 8, resolution: '1080p' };
  const [cost, { result }] = await charged(() =>
    mcp('/mcp/video/test/film', 'tools/call', { name: 'generate_video', arguments: args }),
  );
  expect(cost).toBe(1_650_000n);
  expect(provider.requests.findLast(({ method }) => method === 'POST')!.body).toMatchObject({
    seconds: '8',
    size: '1920x1080',
  });
  const [link] = result.content;
  expect(link).toMatchObject({ type: 'resource_link', mimeType: 'video/mp4' });
  expect(await fileAt(link!.uri!)).toEqual(provider.last().file);

  const [, there] = await charged(() =>
    mcp('/mcp', 'tools/call', { name: 'generate_video', arguments: { model: 'test/film', prompt: 'A tollgate' } }),
  );
  expect(there.result.content[0]).toMatchObject({ type: 'resource_link' });
});

test('wrong arguments of a tool are the tool’s error', async () => {
  for (const [args, why] of [
    [{ prompt: 'A tollgate', duration: 5 }, /duration 5s is not made/],
    [{ prompt: 'A tollgate', duration: 'long' }, /duration/],
    [{ prompt: 'A tollgate', width: 5 }, /Unknown argument "width"/],
  ] as const) {
    const { result } = await mcp('/mcp/video/test/film', 'tools/call', { name: 'generate_video', arguments: args });
    expect([result.isError, result.content[0]!.text]).toEqual([true, expect.stringMatching(why) as string]);
  }
});

test('an agent answers it as a file', async () => {
  const card = await fetch(`${spine.origin}/a2a/video/test/film/.well-known/agent-card.json`);
  expect(await card.json()).toMatchObject({ defaultOutputModes: ['video/mp4'] });
  const message = { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'A tollgate' }] };
  const [cost, answer] = await charged(async () => {
    const response = await fetch(`${spine.origin}/a2a/video/test/film`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
    });
    return (await response.json()) as { result: { parts: { kind: string; file: { uri: string } }[] } };
  });
  expect(cost).toBe(COST);
  const [part] = answer.result.parts;
  expect(part).toMatchObject({ kind: 'file', file: { mimeType: 'video/mp4' } });
  expect(await fileAt(part!.file.uri)).toEqual(provider.last().file);
});

test('a video that fails is an error, and costs nothing', async () => {
  provider.begin(() => ({ status: 'failed', error: { code: 'broken', message: 'the lamp is out' } }));
  const [cost, response] = await charged(() => chat());
  expect(cost).toBe(0n);
  expect(await response.json()).toMatchObject({
    choices: [{ finish_reason: 'error' }],
    error: { message: expect.stringContaining('the lamp is out') as string },
  });
});

test('a client that leaves finds it in its list, charged once', async () => {
  provider.begin(() => ({ status: 'in_progress' }));
  const before = await spine.balance();
  const leaving = new AbortController();
  const asked = spine
    .post(
      '/chat/completions',
      { model: 'video/test/film', messages: [{ role: 'user', content: 'A tollgate at night' }], stream: true },
      {},
      leaving.signal,
    )
    .then((response) => response.text());
  const isQueued = () => provider.requests.some(({ body }) => body['prompt'] === 'A tollgate at night');
  await expect.poll(isQueued, { timeout: 60_000 }).toBe(true);
  await expect
    .poll(
      async () =>
        ((await (await spine.get('/videos?limit=1')).json()) as { data: { status: string }[] }).data[0]?.status,
    )
    .not.toBe('completed');
  leaving.abort();
  await asked.catch(() => {});
  provider.last().status = 'completed';
  const { data } = (await (await spine.get('/videos?limit=1')).json()) as { data: { id: string }[] };
  const file = await spine.post('/video/retrieve', { task_id: data[0]!.id, wait_for_final: true });
  expect(Buffer.from(await file.arrayBuffer())).toEqual(provider.last().file);
  await spine.quiet();
  expect(before.available - (await spine.balance()).available).toBe(COST);
});
