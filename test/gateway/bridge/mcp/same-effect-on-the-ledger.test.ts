import { describe, expect, test } from 'vitest';
import { callTool, modernPost, type PostOptions, type Reply } from '../../../mcp/calls/modern-post.ts';
import { startBridgeWorld, type BridgeWorld, type WorldOptions } from './bridge-world.ts';
import { startLineServer, type Line } from './line-target.ts';

/** What the primitive says, by what it is told. */
const SAYS: Readonly<Record<string, readonly Line[]>> = {
  ok: [{ text: 'done' }, { end: {} }],
  fails: [{ text: 'I tried' }, { end: { finish: 'failed', error: 'out of order' } }],
  breaks: [{ text: 'I was about to' }],
  asks: [{ text: 'Which city?' }, { end: { finish: 'input', taskId: 't' } }],
};

type Ask = (world: BridgeWorld, says: string, options?: PostOptions) => Promise<Reply>;
const at = (world: BridgeWorld, key = 'alice') => ({ origin: world.origin, key });
const ENDPOINTS: Readonly<Record<string, Ask>> = {
  'an agent, by its own address': (world, message, options) =>
    callTool(at(world), 'a2a/weather', 'send_message', { message }, options),
  'a model, by its own address': (world, prompt, options) =>
    callTool(at(world), 'model/gpt', 'chat', { prompt }, options),
  'an agent, by the one address': (world, message, options) =>
    modernPost(
      at(world),
      '/mcp',
      'tools/call',
      { name: 'ask_agent', arguments: { agent: 'weather', message } },
      options,
    ),
  'a model, by the one address': (world, prompt, options) =>
    modernPost(at(world), '/mcp', 'tools/call', { name: 'ask_model', arguments: { model: 'gpt', prompt } }, options),
};

async function startWorld(options: WorldOptions = {}, says = SAYS) {
  const { url, asked, left } = await startLineServer(
    (ask) => says[(ask.turns.at(-1)!.parts[0] as { text: string }).text]!,
  );
  return {
    ...(await startBridgeWorld({ agents: { weather: { url } }, models: { gpt: { url } }, ...options })),
    asked,
    left,
  };
}

describe.each(Object.entries(ENDPOINTS))('%s', (name, ask) => {
  test('is charged once for an answer, and nothing for a failure', async () => {
    const world = await startWorld();
    const ok = await ask(world, 'ok');
    expect(ok.message.result).toMatchObject({
      content: [{ text: 'done' }],
      _meta: { 'tollgate/generation': { cost: '0.001', currency: 'USDC' } },
    });
    expect(ok.message.result).not.toHaveProperty('isError');
    expect(ok.headers.get('x-cost-usd')).toBe('0.001');
    expect(ok.headers.get('x-generation-id')).toBe(
      (ok.message.result['_meta']!['tollgate/generation'] as unknown as { id: string }).id,
    );
    const failed = await ask(world, 'fails');
    expect(failed.message.result).toMatchObject({
      isError: true,
      content: [{ text: 'I tried' }, { text: 'out of order' }],
      _meta: { 'tollgate/generation': { cost: '0' } },
    });
    expect((await ask(world, 'breaks')).message.error).toMatchObject({ code: -32017 });
    expect(await world.charged()).toBe(1_000n);
    expect(await world.faults()).toEqual([]);
    expect(world.endings.map((ending) => ending.split(': ')[1])).toEqual(['stop', 'failed', 'released']);
  });

  test('without money is a result that says how to pay, and nothing is asked', async () => {
    const world = await startWorld();
    const { message, status } = await ask(world, 'ok', { key: 'nobody' });
    expect(status).toBe(200);
    expect(message.result).toMatchObject({
      isError: true,
      resultType: 'complete',
      structuredContent: { x402Version: 2, accepts: [] },
    });
    expect(JSON.parse((message.result['content'] as unknown as { text: string }[])[0]!.text)).toEqual(
      message.result['structuredContent'],
    );
    expect(world.asked).toEqual([]);
  });

  test('runs once under an idempotency key', async () => {
    const world = await startWorld();
    const meta = { 'tollgate/idempotency-key': 'k-1' };
    const first = await ask(world, 'ok', { meta, id: 1 });
    const again = await ask(world, 'ok', { meta, id: 'two' });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.message).toEqual({ ...first.message, id: 'two' });
    expect(world.asked).toHaveLength(1);
    expect((await ask(world, 'asks', { meta })).message.error).toMatchObject({ code: -32014 });
    expect(await world.charged()).toBe(1_000n);
    // What was refused before anything ran is not kept under its key.
    const poor = { key: 'nobody', meta };
    await ask(world, 'ok', poor);
    expect((await ask(world, 'ok', poor)).headers.get('idempotent-replayed')).toBeNull();
  });

  test('gives a receipt where one is asked for', async () => {
    const world = await startWorld();
    const { message } = await ask(world, 'ok', { meta: { 'tollgate/receipt': true } });
    expect(message.result['_meta']!['tollgate/receipt']).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    expect((await ask(world, 'ok')).message.result['_meta']).not.toHaveProperty('tollgate/receipt');
  });

  test('is counted against the rate of the caller', async () => {
    const world = await startWorld({ requestsPerMinute: 1 });
    await ask(world, 'ok');
    expect((await ask(world, 'ok')).message.error).toMatchObject({ code: -32016 });
  });

  test('is refused to a key that may not use it', async () => {
    const world = await startWorld({ allowed: { carol: ['other'] } });
    const { error } = (await ask(world, 'ok', { key: 'carol' })).message;
    // At the one address there is no tool for what a key may not use at all.
    expect(error).toMatchObject({ code: name.endsWith('own address') ? -32012 : -32602 });
    expect(world.asked).toEqual([]);
  });

  test('ends within the drain bound when its client leaves, and is free', async () => {
    const leave = new AbortController();
    const begun = Promise.withResolvers<void>();
    const world = await startWorld(
      {},
      {
        waits: [
          {
            get wait() {
              begun.resolve();
              return new Promise(() => {});
            },
          },
        ],
      },
    );
    const asking = ask(world, 'waits', { signal: leave.signal }).catch((error: Error) => error.name);
    await begun.promise;
    leave.abort();
    expect(await asking).toBe('AbortError');
    await world.left;
    await expect.poll(world.inFlight).toBe(0);
    expect(world.endings.map((ending) => ending.split(': ')[1])).toEqual(['cancelled']);
    expect(await world.charged()).toBe(0n);
    expect(await world.faults()).toEqual([]);
  });
});

test('an agent that asks something is charged as its speaker says, and the next message goes on with its task', async () => {
  const world = await startWorld();
  const { result } = (await ENDPOINTS['an agent, by the one address']!(world, 'asks')).message;
  expect(result).toMatchObject({
    content: [{ text: 'Which city?' }],
    structuredContent: { task_id: 't', context_id: null, state: 'input-required' },
    resultType: 'complete',
  });
  expect(result).not.toHaveProperty('isError');
  await callTool(at(world), 'a2a/weather', 'send_message', { message: 'ok', task_id: 't' });
  expect(world.asked.at(-1)).toMatchObject({ taskId: 't' });
});

test('what a request says to the gateway is not told on, and params.task counts for nothing', async () => {
  const world = await startWorld();
  const bad = await ENDPOINTS['a model, by its own address']!(world, 'ok', {
    meta: { 'tollgate/idempotency-key': '' },
  });
  expect(bad.message.error).toMatchObject({ code: -32602 });
  const task = await callTool(at(world), 'model/gpt', 'chat', { prompt: 'ok' }, { params: { task: {} } });
  expect(task.message.result).toMatchObject({ content: [{ type: 'text' }], _meta: { 'tollgate/generation': {} } });
  expect(world.asked).toHaveLength(1);
});
