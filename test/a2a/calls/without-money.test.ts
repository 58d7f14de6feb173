import { expect, test } from 'vitest';
import type { Json } from '../contract/shapes.ts';
import type { Reply } from '../contract/client-calls.ts';
import { heldBy, LEGACY_RPC, refusalOf, REST, RPC, useCallsWorld, WIRES, type Wire } from './support/calls-world.ts';
import { escrowOf, treasuryOf } from '#billing';
import { startSpine } from '../../support/spine.ts';
import { serveRaw, taskResult } from './support/raw-served.ts';
import { createTalk } from '../contract/client-calls.ts';

const calls = useCallsWorld();

const accountOf = (name: string, wire: Wire) => `${name}-${wire.name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}`;

/** The terms of payment in a task that waits for money; throws where there are none. */
function termsOf(reply: Reply): { readonly task: Json; readonly required: Json } {
  const task = heldBy(reply);
  const message = (task['status'] as Json)['message'] as Json;
  const metadata = message['metadata'] as Json;
  expect(metadata['x402.payment.status']).toBe('payment-required');
  return { task, required: metadata['x402.payment.required'] as Json };
}

const unpaidState = (reply: Reply) => String((heldBy(reply)['status'] as Json)['state']);
const asks = (received: readonly { readonly body: string }[]) =>
  received.filter(({ body }) => body.includes('"text"')).length;

test.each(WIRES)(
  'without money there is a task that waits for it, with the terms; the agent hears nothing, and nothing is kept: $name',
  async (wire) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const poor = await calls.world.spine.tenant(accountOf('poor', wire), '0.0005');
    const none = await calls.world.spine.tenant(accountOf('none', wire), '0');
    for (const { key } of [poor, none]) {
      const talk = calls.talk(url, wire, key);
      const reply = await talk.sent('task work', { message: { messageId: 'unpaid', contextId: 'context-1' } });
      expect(reply.status, reply.text).toBe(200);
      expect(unpaidState(reply)).toBe(wire === LEGACY_RPC ? 'input-required' : 'TASK_STATE_INPUT_REQUIRED');
      const { task, required } = termsOf(reply);
      expect(task['contextId']).toBe('context-1');
      expect(required).toMatchObject({
        x402Version: expect.any(Number) as number,
        accepts: expect.any(Array) as unknown[],
        error: expect.any(String) as string,
      });
      expect(JSON.stringify(required)).toContain('0.001');
      expect(String(task['id']).length).toBeLessThanOrEqual(256);
      // No task that there is.
      expect(refusalOf(await talk.call('GetTask', { id: String(task['id']) }))?.code).toBe(-32_001);
      if (wire.version === '1.0')
        expect((await talk.call('ListTasks', {})).json).toMatchObject(
          wire.binding === 'JSONRPC' ? { result: { tasks: [] } } : { tasks: [] },
        );
      const stream = await talk.open('SendStreamingMessage', {
        message: {
          messageId: 'unpaid-2',
          role: wire.version === '1.0' ? 'ROLE_USER' : 'user',
          parts: [wire.version === '1.0' ? { text: 'x' } : { kind: 'text', text: 'x' }],
        },
      });
      if (!('next' in stream)) throw new Error(stream.text);
      // The codec of the tests knows no 0.3 over HTTP+JSON.
      if (wire.name !== 'HTTP+JSON 0.3')
        expect(await stream.rest()).toMatchObject([{ type: 'task', state: 'input-required' }]);
    }
    expect(asks(agent.received)).toBe(0);
  },
);

test.each([RPC, LEGACY_RPC, REST])(
  'once there is money, a message to that task is a new message: $name',
  async (wire) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const { spine } = calls.world;
    const poor = await spine.tenant(accountOf('later', wire), '0');
    const talk = calls.talk(url, wire, poor.key);
    const { task } = termsOf(await talk.sent('task work', { message: { messageId: 'same' } }));
    const goesOn = { message: { messageId: 'same', taskId: task['id'], contextId: task['contextId'] } };
    // Still nothing: asked again, for another task.
    termsOf(await talk.sent('task work', goesOn));
    // Nobody else's id opens anything here.
    expect(refusalOf(await calls.talk(url, wire).sent('task work', goesOn))?.code).toBe(-32_001);
    const credit = { from: treasuryOf('operator'), to: escrowOf(poor.account), amount: 10_000n, memo: '' };
    await spine.app.ledger.transfer({ id: `later ${wire.name}`, ...credit });
    const done = await talk.sent('task work', goesOn);
    expect(unpaidState(done), done.text).toMatch(/completed/i);
    expect(heldBy(done)['id']).not.toBe(task['id']);
    expect(agent.asked.at(-1)!.body).not.toContain('unpaid-');
    expect(asks(agent.received)).toBe(1);
  },
);

test.each([RPC, LEGACY_RPC, REST])(
  'a message that was to go on with a task does so once there is money: $name',
  async (wire) => {
    const { url } = await calls.serve({ version: 'both' });
    const { spine } = calls.world;
    const poor = await spine.tenant(accountOf('midway', wire), '0.001');
    const talk = calls.talk(url, wire, poor.key);
    const { id, contextId } = await talk.task('ask');
    const { task } = termsOf(await talk.sent('blue', { message: { taskId: id } }));
    expect(task['contextId']).toBe(contextId);
    const credit = { from: treasuryOf('operator'), to: escrowOf(poor.account), amount: 1_000n, memo: '' };
    await spine.app.ledger.transfer({ id: `midway ${wire.name}`, ...credit });
    const done = await talk.task('blue', { message: { taskId: task['id'], contextId: task['contextId'] } });
    expect(done).toMatchObject({ id, state: 'completed' });
    expect(await spine.app.ledger.balance(escrowOf(poor.account))).toEqual({ available: 0n, locked: 0n });
  },
);

test('a key that has spent its limit waits for money as an account without any does', async () => {
  const { url } = await calls.serve();
  const { key } = await calls.world.spine.tenant('limited', '1', { limit: 1_500n, limitReset: null });
  const talk = calls.talk(url, RPC, key);
  expect((await talk.task('task one')).state).toBe('completed');
  const reply = await talk.sent('task two');
  expect(unpaidState(reply)).toBe('TASK_STATE_INPUT_REQUIRED');
  expect(JSON.stringify(termsOf(reply))).toMatch(/Spending limit/);
});

test('a budget that the account cannot cover waits for money, and says how much', async () => {
  const { url } = await calls.serve();
  const { key } = await calls.world.spine.tenant('small', '0.1');
  const talk = calls.talk(url, RPC, key);
  const reply = await talk.sent('task one', { metadata: { 'tollgate/max_cost': '0.5' } });
  expect(JSON.stringify(termsOf(reply).required)).toMatch(/0\.5|500000/);
  expect((await talk.task('task one', { metadata: { 'tollgate/max_cost': '0.05' } })).state).toBe('completed');
});

test.each(WIRES)('no key, an unknown one and a revoked one are unauthorized: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const gone = await calls.world.spine.tenant(accountOf('gone', wire), '1');
  await calls.talk(url, wire, gone.key).sent('task before');
  expect(await calls.world.spine.app.keys.delete(gone.account, gone.hash)).toBe(true);
  for (const key of [gone.key, 'svc-sk-v1-nonsense', '']) {
    const reply = await calls.talk(url, wire, key).sent('task after');
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toMatch(/Bearer/);
    expect(refusalOf(reply)?.message ?? reply.text).toMatch(/API key|svc-sk/);
  }
  expect(asks(agent.received)).toBe(1);
});

test.each(WIRES)(
  'a key for other services may not send to this agent, nor see what the account has there: $name',
  async (wire) => {
    const { url, agent, service } = await calls.serve({ version: 'both' });
    const { spine } = calls.world;
    const { id } = await calls.talk(url).task('task own', { message: { messageId: 'own' } });
    const made = (await spine.app.keys.create({
      account: spine.account,
      label: 'narrow',
      kind: 'live',
      expiresAt: null,
      limit: null,
      limitReset: null,
      allowedServices: ['elsewhere'],
    }))!;
    const before = agent.asked.length;
    const talk = calls.talk(url, wire, made.text);
    const replies = [
      await talk.sent('task x'),
      await talk.call('GetTask', { id }),
      await talk.call('CancelTask', { id }),
      await talk.call('ListTaskPushNotificationConfigs', wire.version === '1.0' ? { taskId: id } : { id, taskId: id }),
      ...(wire.version === '1.0' ? [await talk.call('ListTasks', {})] : []),
      // What was sent once by another key of the account.
      await talk.sent('task own', { message: { messageId: 'own' } }),
    ];
    for (const reply of replies) {
      expect(reply.text).toMatch(/may not use/);
      expect(reply.text).toContain(service);
      expect(reply.status).toBe(403);
    }
    expect(agent.asked.length).toBe(before);
  },
);

test('who asks too often is told when to come back, on every wire', async () => {
  const spine = await startSpine({ toml: '[limits]\nrequests_per_minute = 1\nburst = 1\n' });
  const { url } = await serveRaw({ spine }, ({ result }) => result(taskResult(crypto.randomUUID(), 'COMPLETED')));
  for (const wire of WIRES) {
    const { key } = await spine.tenant(accountOf('hasty', wire), '1');
    const talk = createTalk(
      { url: `${url}${wire.below}`, headers: { authorization: `Bearer ${key}` } },
      wire.version,
      wire.binding,
    );
    let reply = await talk.sent('one');
    for (let turn = 0; turn < 5 && reply.status !== 429; turn += 1) reply = await talk.sent('again');
    expect(reply.status, wire.name).toBe(429);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refusalOf(reply)?.message).toMatch(/rate|often|limit/i);
    expect(reply.contentType).toMatch(
      wire.binding === 'JSONRPC' || wire.version === '0.3' ? /^application\/json/ : /^application\/a2a\+json/,
    );
  }
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});
