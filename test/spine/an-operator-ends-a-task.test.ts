import type OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTalk, type ProviderStream } from '../a2a/contract/client-calls.ts';
import { startQuickAgent, type QuickAgent } from '../a2a/faults/support/quick-agent.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { toolToml } from '../mcp/calls/modern-post.ts';
import { askTask, beginTask, getTask } from '../mcp/tasks/task-client.ts';
import { startTaskServer, type TaskServer } from '../mcp/tasks/task-server.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from '../openai/batches/support/batch-client.ts';
import { agentBlock } from '../support/a2a-agent/index.ts';
import { startBatchProvider, type BatchProvider } from '../support/batch-provider.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * An administrator ends the task, the video or the batch that a call has begun. It is free, also with output; its
 * provider is asked to cancel it, and its client reads the reason.
 */

const WORDS = 'The operator of this gateway ended the call: it hung';
const BATCHED = 'lot/model';

let agent: QuickAgent;
let server: TaskServer;
let films: VideoProvider;
let lot: BatchProvider;
let spine: Spine;
let client: OpenAI;
let before: Awaited<ReturnType<Spine['balance']>>;
beforeAll(async () => {
  [agent, server, films, lot] = await Promise.all([
    startQuickAgent(),
    startTaskServer(),
    startVideoProvider(),
    startBatchProvider(),
  ]);
  const toml = [
    `${UNHURRIED}[upstream]\ncooldown_ms = 1\n[media]\nfree_bytes_min = 0\n[batches]\nprovider_look_ms = 20\n`,
    agentBlock({ name: 'quick/agent', endpoint: agent.url }),
    toolToml({ name: 'slow', url: server.url }),
    videoBlock({ url: films.url }),
    modelBlock({
      name: BATCHED,
      provider: 'Lot',
      url: lot.url,
      prompt: 1,
      completion: 2,
      pricing: 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }',
      params: 'batches = true',
    }),
  ].join('');
  spine = await startSpine({ toml });
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([agent.close(), server.close(), films.close(), lot.stop()]);
});
beforeEach(async () => {
  await spine.quiet();
  before = await spine.balance();
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

interface Shown {
  readonly state: string;
  readonly cost_micro_usdc: number;
  readonly error: string | null;
  readonly error_code: string | null;
  readonly status: number | null;
}

async function end(id: string, body: object = { reason: 'it hung' }) {
  const response = await fetch(`${spine.origin}/admin/v1/calls/${id}/end`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { data: Shown; error: { message: string } } };
}

const ENDED = { cost_micro_usdc: 0, error: WORDS, error_code: 'call_ended', status: 409 };

/** Ends a call, and checks what everybody but its client sees. */
async function endsFree(id: string): Promise<void> {
  expect(await end(id)).toMatchObject({ status: 200, body: { data: ENDED } });
  expect(await spine.balance()).toEqual({ ...before, locked: 0n });
  expect(await spine.generation(id)).toMatchObject(ENDED);
  const lines = spine.logs.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(
    lines.filter(({ msg, generation }) => msg === 'an administrator ended a call' && generation === id),
  ).toMatchObject([{ administrator: 'root', reason: 'it hung' }]);
  const headers = { authorization: `Bearer ${spine.adminKey}` };
  const log = (await (await fetch(`${spine.origin}/admin/v1/audit-log`, { headers })).json()) as { data: object[] };
  expect(log.data).toContainEqual(
    expect.objectContaining({ path: `/admin/v1/calls/${id}/end`, actor: 'root', status: 200 }),
  );
  expect(await end(id)).toMatchObject({ status: 422, body: { error: { message: 'The call has ended already' } } });
}

describe('the task of an agent', () => {
  const talk = (): ProviderStream =>
    createTalk(
      { url: `${spine.origin}/a2a/quick/agent`, headers: { authorization: `Bearer ${spine.key}` } },
      '1.0',
      'JSONRPC',
    );
  /** The newest call of the account. */
  const newest = async () => {
    const { data } = (await (await spine.get('/generations?limit=1')).json()) as { data: readonly { id: string }[] };
    return data[0]!.id;
  };

  test('that nobody waits for is canceled at the agent, and shows the reason', async () => {
    const { id } = await talk().task('work', { immediately: true });
    await endsFree(await newest());
    expect(agent.tasks.get(id)!.state).toBe('canceled');
    const shown = await talk().call('GetTask', { id });
    expect(JSON.stringify(shown)).toContain(WORDS);
    expect(JSON.stringify(shown)).toContain('TASK_STATE_CANCELED');
  });

  test('that waits for its client, with output, is free too', async () => {
    const { id } = await talk().task('ask', { immediately: true });
    await talk().reaches(id, 'input-required');
    await endsFree(await newest());
    const again = await talk().call('SendMessage', {
      message: { messageId: 'late', role: 'ROLE_USER', taskId: id, parts: [{ text: 'blue' }] },
    });
    expect(JSON.stringify(again.json)).toContain('TASK_STATE_CANCELED');
    expect(await spine.balance()).toEqual({ ...before, locked: 0n });
  });

  test('that its client streams ends in the stream', async () => {
    const stream = await talk().stream('work');
    const { id } = (await stream.next()) as { id: string };
    await endsFree(await newest());
    await expect(stream.rest()).rejects.toThrow('ended the call: it hung');
    expect(agent.tasks.get(id)!.state).toBe('canceled');
  });

  test('that a chat waits for is free, and its client gets the reason', async () => {
    const asking = spine.post('/chat/completions', {
      model: 'a2a/quick/agent',
      messages: [{ role: 'user', content: 'work for a chat' }],
    });
    await until(() => [...agent.tasks.values()].some(({ text }) => text === 'work for a chat'));
    await endsFree(await newest());
    expect(await (await asking).text()).toContain('ended the call: it hung');
    const { state } = [...agent.tasks.values()].find(({ text }) => text === 'work for a chat')!;
    expect(state).toBe('canceled');
  });
});

describe('the task of a tool', () => {
  test('is cancelled at its server, and shows the reason', async () => {
    const { id, call } = await beginTask(spine, 'slow');
    const there = server.ids.at(-1)!;
    await endsFree(call);
    expect(server.askedOf(there, 'tasks/cancel')).toBe(1);
    expect((await getTask(spine, 'slow', id)).message.result).toMatchObject({
      taskId: id,
      status: 'cancelled',
      statusMessage: WORDS,
    });
    for (const method of ['tasks/cancel', 'tasks/update'])
      expect((await askTask(spine, '/mcp/slow', method, id)).message.error).toBeDefined();
  });

  test('is free although its server is done with it meanwhile', async () => {
    const { id, call } = await beginTask(spine, 'slow');
    server.says(server.ids.at(-1)!, { status: 'completed', result: { content: [{ type: 'text', text: 'done' }] } });
    await endsFree(call);
    expect(JSON.stringify((await getTask(spine, 'slow', id)).message)).not.toContain('done');
    expect(await spine.balance()).toEqual({ ...before, locked: 0n });
  });
});

test.each([true, false])('a video shows the reason, and is free; its provider cancels it: %s', async (cancels) => {
  films.begin(() => ({ status: 'in_progress' }));
  films.cancels = cancels;
  const queued = await spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' });
  const { id } = (await queued.json()) as { id: string };
  await endsFree(queued.headers.get('x-generation-id')!);
  await until(() => films.requests.some(({ method }) => method === 'DELETE') || films.last().cancelled);
  expect(films.last().cancelled).toBe(cancels);
  // What it makes nevertheless is not delivered.
  films.last().status = 'completed';
  expect(await (await spine.post('/video/retrieve', { task_id: id })).json()).toMatchObject({
    status: 'failed',
    error: { code: 'cancelled', message: WORDS },
  });
});

describe('a batch', () => {
  const line = (id: string, text: string) => chatLine(id, text, { model: BATCHED });

  test('at its provider is cancelled there, and nothing that it had made is charged', async () => {
    const { id } = await begin(client, [line('a', 'one'), line('b', 'two')]);
    await until(() => lot.batches.length > 0);
    const there = lot.batches.at(-1)!;
    await until(async () => (await client.batches.retrieve(id)).status === 'in_progress');
    await until(async () => lot.log.filter((one) => one === `GET /batches/${there.id}`).length > 0);
    const { tollgate } = (await client.batches.retrieve(id)) as unknown as { tollgate: { generation_id: string } };
    expect(await end(tollgate.generation_id)).toMatchObject({ status: 200, body: { data: ENDED } });
    const batch = await ended(client, id);
    expect(batch).toMatchObject({
      status: 'cancelled',
      errors: { data: [{ code: 'call_ended', message: WORDS }] },
      request_counts: { total: 2, completed: 0, failed: 2 },
    });
    const { errors } = await resultsOf(client, batch);
    expect(errors.map(({ error }) => error)).toEqual([
      { code: 'call_ended', message: WORDS },
      { code: 'call_ended', message: WORDS },
    ]);
    expect(lot.log).toContain(`POST /batches/${there.id}/cancel`);
    expect(await spine.balance()).toEqual({ ...before, locked: 0n });
    expect((await end(tollgate.generation_id)).status).toBe(422);
  });

  test('of lines that run: they end, and those that had ended stay charged', async () => {
    const { id } = await begin(client, [chatLine('quick', 'ping !tokens:5'), chatLine('slow', '!head-delay:forever')]);
    await until(async () => (await client.batches.retrieve(id)).request_counts!.completed === 1);
    const { tollgate } = (await client.batches.retrieve(id)) as unknown as { tollgate: { generation_id: string } };
    expect((await end(tollgate.generation_id)).status).toBe(200);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 2, completed: 1, failed: 1 } });
    const { output, errors } = await resultsOf(client, batch);
    expect(JSON.stringify(errors)).toContain(WORDS);
    const { cost_micro_usdc: charged } = await spine.generation(output[0]!.response!.body.id!);
    expect(charged).toBeGreaterThan(0);
    expect(await spine.balance()).toEqual({ available: before.available - BigInt(charged), locked: 0n });
  });
});
