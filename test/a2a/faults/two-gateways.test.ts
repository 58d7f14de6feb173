import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startCluster, type Cluster } from '../../support/cluster.ts';
import { UNHURRIED, type Spine } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { createTalk, type ProviderStream } from '../contract/client-calls.ts';
import { startQuickAgent, type QuickAgent } from './support/quick-agent.ts';

// Two gateways of one database: tasks are both's, whoever began them.

const PRICE = 1_000n;
const SERVICE = 'both/agent';

let cluster: Cluster<Spine>;
let here: Spine;
let there: Spine;
let agent: QuickAgent;
let before: bigint;
beforeAll(async () => {
  agent = await startQuickAgent();
  const toml = `${UNHURRIED}\n[tasks]\nlook_ms_max = 1000\n${agentBlock({ name: SERVICE, endpoint: agent.url })}`;
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
  [here, there] = cluster.gateways as [Spine, Spine];
});
afterAll(async () => {
  await cluster.stop();
  await agent.close();
});
beforeEach(async () => {
  before = (await here.balance()).available;
});
afterEach(async () => {
  expect(await here.faults()).toEqual([]);
});

/** One key that both know. */
const at = ({ origin }: Spine): ProviderStream =>
  createTalk({ url: `${origin}/a2a/${SERVICE}`, headers: { authorization: `Bearer ${here.key}` } }, '1.0', 'JSONRPC');
const paid = async () => before - (await here.balance()).available;

test('a task that was begun at one is shown, heard, answered and canceled at the other', async () => {
  const asked = await at(here).task('ask', { immediately: true });
  await at(there).reaches(asked.id, 'input-required');
  expect((await here.balance()).locked).toBe(PRICE);
  const answered = await at(there).task('blue', { message: { taskId: asked.id, contextId: asked.contextId } });
  expect(answered.state).toBe('completed');
  const { id } = await at(there).task('work', { immediately: true });
  const listening = await at(here).subscribe(id);
  expect(await listening.next()).toMatchObject({ type: 'task', id });
  expect((await at(here).call('CancelTask', { id })).error).toBeNull();
  expect((await listening.rest()).at(-1)).toMatchObject({ type: 'status', state: 'canceled' });
  await here.quiet();
  expect(await paid()).toBe(2n * PRICE);
});

test('a stream at one whose end is seen first by a look of the gateways: its client is told what the task cost, which is charged once', async () => {
  const stream = await at(here).stream('work');
  const first = await stream.next();
  const { id } = first as { id: string };
  agent.endSilently(id, 'completed');
  // Nobody but the gateways asks for it.
  await here.quiet();
  expect(await paid()).toBe(PRICE);
  agent.tell(id);
  const [last] = (await stream.rest()).slice(-1);
  expect(last).toMatchObject({
    type: 'status',
    state: 'completed',
    metadata: { 'tollgate/generation': { cost: '0.001' } },
  });
  expect(await paid()).toBe(PRICE);
});

test('everybody at both sees the end of a task in the same moment: it is settled once', async () => {
  const count = 20;
  const streams = await Promise.all(
    Array.from({ length: count }, (_, index) => at(index % 2 === 0 ? here : there).stream('work')),
  );
  const ids = await Promise.all(streams.map(async (stream) => ((await stream.next()) as { id: string }).id));
  const listeners = await Promise.all(ids.flatMap((id) => [at(here).subscribe(id), at(there).subscribe(id)]));
  await Promise.all(listeners.map((listener) => listener.next()));
  for (const id of ids) agent.end(id, 'completed');
  await Promise.all([...streams, ...listeners].map((stream) => stream.rest()));
  await Promise.all(ids.flatMap((id) => [at(here).reaches(id, 'completed'), at(there).reaches(id, 'completed')]));
  await here.quiet();
  expect(await paid()).toBe(BigInt(count) * PRICE);
});

test('looks are shared: no task is looked at twice at once, and its pauses are kept, whoever looks', async () => {
  const count = 24;
  const polls = new Map<string, number[]>();
  const running = new Set<string>();
  const twice: string[] = [];
  agent.onPoll = async (id) => {
    if (running.has(id)) twice.push(id);
    running.add(id);
    polls.set(id, [...(polls.get(id) ?? []), performance.now()]);
    await new Promise((resolve) => setTimeout(resolve, 30));
    running.delete(id);
  };
  const ids = await Promise.all(
    Array.from(
      { length: count },
      async (_, index) => (await at(index % 2 === 0 ? here : there).task('work', { immediately: true })).id,
    ),
  );
  await until(() => ids.every((id) => (polls.get(id)?.length ?? 0) >= 2));
  agent.onPoll = null;
  const pauses = ids.flatMap((id) =>
    polls
      .get(id)!
      .slice(1)
      .map((time, index) => time - polls.get(id)![index]!),
  );
  expect(twice).toEqual([]);
  // Of the longest pause, 1,000 ms, a fifth is left to chance.
  expect(Math.min(...pauses)).toBeGreaterThan(750);
  for (const id of ids) agent.end(id, 'failed');
  await here.quiet();
  expect(await paid()).toBe(0n);
});
