import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createTalk } from '../a2a/contract/client-calls.ts';
import { startQuickAgent, type QuickAgent } from '../a2a/faults/support/quick-agent.ts';
import { begin, chatLine, clientAt, ended, until, type OwnBatch } from '../openai/batches/support/batch-client.ts';
import { agentBlock } from '../support/a2a-agent/index.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { ask, MODEL, UNHURRIED, type Spine } from '../support/spine.ts';
import { readStream } from '../support/tunnel-spine.ts';

// A call runs at one gateway, and the administrator asks another one to end it.

const AGENT = 'quick/agent';

let agent: QuickAgent;
let cluster: Cluster<Spine>;
beforeAll(async () => {
  agent = await startQuickAgent();
  const toml = `${UNHURRIED}${agentBlock({ name: AGENT, endpoint: agent.url })}`;
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
});
afterAll(async () => {
  await cluster?.stop();
  await agent?.close();
});

async function end(at: Spine, id: string) {
  const response = await fetch(`${at.origin}/admin/v1/calls/${id}/end`, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'it never ends' }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test('it ends there, midway and free, and the log there names the administrator', async () => {
  const [here, there] = cluster.gateways as [Spine, Spine];
  const before = await here.balance();
  const running = await readStream(
    here.post('/chat/completions', ask('!tokens:10000 !token-ms:20', { model: MODEL, stream: true })),
  );
  await running.tokens(3);
  const id = running.response.headers.get('x-generation-id')!;
  expect(await end(there, id)).toMatchObject({
    status: 200,
    body: { data: { id, state: 'released', cost_micro_usdc: 0 } },
  });
  expect(await running.end).toContain('ended the call: it never ends');
  expect(await here.balance()).toEqual(before);
  expect(here.logs.join('')).toContain('an administrator ended a call');
  expect(there.logs.join('')).not.toContain('an administrator ended a call');
  expect((await end(there, id)).status).toBe(422);
  expect((await end(there, 'gen-nothing')).status).toBe(404);
  expect(await here.faults()).toEqual([]);
});

test('the task that a call at one has left is ended by the other, and so is one whose stream is open', async () => {
  const [here, there] = cluster.gateways as [Spine, Spine];
  const before = await here.balance();
  const place = { url: `${here.origin}/a2a/${AGENT}`, headers: { authorization: `Bearer ${here.key}` } };
  const talk = createTalk(place, '1.0', 'JSONRPC');
  const newest = async () => {
    const { data } = (await (await here.get('/generations?limit=1')).json()) as { data: readonly { id: string }[] };
    return data[0]!.id;
  };
  const free = { status: 200, body: { data: { cost_micro_usdc: 0, error_code: 'call_ended' } } };
  const left = await talk.task('work', { immediately: true });
  expect(await end(there, await newest())).toMatchObject(free);
  const stream = await talk.stream('work');
  const { id } = (await stream.next()) as { id: string };
  expect(await end(there, await newest())).toMatchObject(free);
  await expect(stream.rest()).rejects.toThrow('ended the call: it never ends');
  expect([left.id, id].map((task) => agent.tasks.get(task)!.state)).toEqual(['canceled', 'canceled']);
  expect(await here.balance()).toEqual(before);
  expect(await here.faults()).toEqual([]);
});

test('the batch that either works on is ended by both', async () => {
  const [here] = cluster.gateways as [Spine, Spine];
  for (const at of cluster.gateways as [Spine, Spine]) {
    const before = await here.balance();
    const client = clientAt(`${here.origin}/v1`, here.key);
    const { id } = await begin(client, [chatLine('slow', '!head-delay:forever')]);
    await until(async () => (await here.balance()).locked > 0n);
    await until(async () => (await client.batches.retrieve(id)).status === 'in_progress');
    const { tollgate } = (await client.batches.retrieve(id)) as OwnBatch;
    expect((await end(at, tollgate.generation_id!)).status).toBe(200);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'cancelled', errors: { data: [{ code: 'call_ended' }] } });
    await here.quiet();
    expect(await here.balance()).toEqual({ ...before, locked: 0n });
  }
  expect(await here.faults()).toEqual([]);
});
