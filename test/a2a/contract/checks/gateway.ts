import { expect } from 'vitest';
import { expectError, workingTask, type Bench, type Checks } from '../bench.ts';
import { writeMessage, type Json } from '../shapes.ts';
import type { Reply, ProviderStream } from '../client-calls.ts';

/**
 * What only holds where somebody stands before the agent: who may call, whose task it is, and what a broken agent
 * may do (§3.3.2, §7.4, §13.1).
 */
export const gatewayChecks: Checks = {
  'GATE-01': async (bench) => {
    const marker = `marker-${crypto.randomUUID()}`;
    await bench.talk.send(`echo ${marker}`);
    const { headers, body } = await bench.agent.receives((request) => request.body.includes(marker));
    const secrets = Object.values(bench.talk.place.headers).map((value) => value.replace(/^Bearer /u, ''));
    for (const secret of secrets) expect(JSON.stringify(headers) + body).not.toContain(secret);
  },
  'GATE-02': async (bench) => {
    for (const word of ['crash', 'garbage', 'neither']) {
      const reply = await bench.talk.sent(word);
      expectBroken(reply, bench.talk);
    }
  },
  'GATE-03': async ({ talk }) => {
    const message = writeMessage(talk.version, 'echo x');
    const rpc = {
      jsonrpc: '2.0',
      id: 1,
      method: talk.version === '1.0' ? 'SendMessage' : 'message/send',
      params: { message },
    };
    const path = talk.binding === 'JSONRPC' ? '/' : '/message:send';
    const body = talk.binding === 'JSONRPC' ? rpc : { message };
    for (const authorization of [null, 'Bearer no-such-key']) {
      const reply = await talk.raw('POST', path, JSON.stringify(body), { authorization });
      expect(reply.status, reply.text).toBe(401);
      expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer\b/u);
    }
  },
  'GATE-04': async ({ talk }) => {
    const reply = await talk.sent('unknown-fields');
    const whole = reply.result();
    const task = (talk.version === '1.0' ? whole['task'] : whole) as Json;
    expect(task).toMatchObject({ xTask: { 'a-key': null }, status: { xStatus: 'kept' } });
    expect(task['artifacts']).toMatchObject([{ xArtifact: [], parts: [{ xPart: { deep: [1, { er: true }] } }] }]);
    if (talk.version === '1.0') expect(whole['xResult']).toBe(7);
  },
  'GATE-05': async (bench) => {
    const stranger = strangerOf(bench);
    const id = await workingTask(bench);
    const asked = ['GetTask', 'CancelTask', 'SubscribeToTask'] as const;
    for (const operation of asked) {
      expectError(await stranger.call(operation, { id }), 'taskNotFound', bench);
    }
    expectError(await stranger.sent('task mine now', { message: { taskId: id } }), 'taskNotFound', bench);
    expect((await bench.talk.get(id)).state).toBe('working');
    bench.agent.finish(id);
  },
  'GATE-06': async (bench) => {
    const stranger = strangerOf(bench);
    const { id, contextId } = await bench.talk.task('task x');
    expect((await stranger.call('ListTasks', {})).text).not.toContain(id);
    expect((await stranger.call('ListTasks', { contextId })).result()['tasks']).toEqual([]);
    expect((await bench.talk.call('ListTasks', { contextId })).text).toContain(id);
  },
  'GATE-07': async ({ talk }) => {
    const stream = await talk.stream('cut');
    const events: unknown[] = [];
    await expect(
      (async () => {
        for (let event = await stream.next(); event; event = await stream.next()) events.push(event);
        const last = events.at(-1) as { readonly state?: string } | undefined;
        if (last?.state !== 'failed') throw new Error('the stream ended as if nothing were wrong');
      })().catch((error: unknown) => String(error)),
    ).resolves.not.toContain('as if nothing were wrong');
  },
  'GATE-08': async ({ talk, agent }) => {
    const card = await talk.raw('GET', '/.well-known/agent-card.json', null);
    expect(card.text).not.toContain(new URL(agent.url).host);
    expect(card.text).toContain(talk.place.url);
  },
};

function strangerOf({ stranger }: Bench): ProviderStream {
  if (!stranger) throw new Error('a target behind a gateway has to have a stranger');
  return stranger;
}

/** The agent broke, and the client is told so without a word of what is behind. */
function expectBroken(reply: Reply, talk: ProviderStream): void {
  expect(reply.error, reply.text).not.toBeNull();
  expect(reply.text).not.toContain('secret.ts');
  if (talk.binding === 'JSONRPC')
    expect([-32006, -32603, -32010, -32011, -32012, -32013, -32014, -32015, -32016, -32017, -32018, -32019]).toContain(
      reply.error?.code,
    );
  else expect(reply.status).toBeGreaterThanOrEqual(500);
}
