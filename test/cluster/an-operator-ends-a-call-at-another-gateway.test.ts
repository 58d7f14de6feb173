import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { ask, MODEL, type Spine } from '../support/spine.ts';
import { readStream } from '../support/tunnel-spine.ts';

// A call runs at one gateway, and the administrator asks another one to end it.

let cluster: Cluster<Spine>;
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2 });
});
afterAll(() => cluster?.stop());

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
