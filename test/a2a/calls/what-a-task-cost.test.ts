import { expect, onTestFinished, test } from 'vitest';
import { startWebhook, tells } from '../contract/webhook.ts';
import type { Event, Json } from '../contract/shapes.ts';
import { heldBy, LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

/** Whoever did not hear the end of an answer finds what its task cost, and its receipt, at the task itself. */

const calls = useCallsWorld();

interface Money {
  readonly id: string;
  readonly cost?: string;
  readonly currency?: string;
  readonly calls?: readonly { readonly id: string; readonly cost: string }[];
}
const moneyOf = (holder: Json): Money => (holder['metadata'] as Json)['tollgate/generation'] as Money;
const moneyIn = ({ raw }: Event): Money => {
  const inner =
    Object.values(raw).find((value) => typeof value === 'object' && value !== null && 'metadata' in value) ?? raw;
  return moneyOf(raw['metadata'] === undefined ? inner : raw);
};
const PRICE = '0.001';

test.each([RPC, LEGACY_RPC, REST])(
  'a task that ended with its answer says so whenever it is asked for: $name',
  async (wire) => {
    const { url } = await calls.serve({ version: 'both' });
    const talk = calls.talk(url, wire);
    expect(
      await calls.spent(async () => {
        const sent = heldBy(
          await talk.sent('task one', { configuration: wire.version === '0.3' ? { blocking: true } : {} }),
        );
        const shown = await talk.get(String(sent['id']));
        expect(moneyOf(shown.raw)).toEqual({ id: moneyOf(sent).id, cost: PRICE, currency: 'USDC' });
        expect(await calls.world.spine.generation(moneyOf(sent).id)).toMatchObject({
          cost_micro_usdc: Number(MESSAGE_PRICE),
        });
      }),
    ).toBe(MESSAGE_PRICE);
  },
);

test.each([RPC, LEGACY_RPC, REST])('a stream names its call in its head and its first event: $name', async (wire) => {
  const { url } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('stream 3', { message: { messageId: `streamed ${wire.name}` } });
      const events = await stream.rest();
      const first = moneyIn(events[0]!);
      expect(first).toEqual({ id: stream.headers.get('x-generation-id') });
      expect(moneyIn(events.at(-1)!)).toEqual({ id: first.id, cost: PRICE, currency: 'USDC' });
      // The replay is the task.
      const [again] = await (await talk.stream('stream 3', { message: { messageId: `streamed ${wire.name}` } })).rest();
      expect(moneyIn(again!)).toEqual({ id: first.id, cost: PRICE, currency: 'USDC' });
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each([RPC, LEGACY_RPC])('who listens again, and a webhook, are told: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  const hook = await startWebhook();
  onTestFinished(() => hook.close());
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('wait', { immediately: true });
      const config = { url: hook.url, id: 'c' };
      await talk.call('CreateTaskPushNotificationConfig', {
        taskId: id,
        ...(wire.version === '1.0' ? config : { pushNotificationConfig: config }),
      });
      const call = moneyOf((await talk.get(id)).raw);
      expect(call).toEqual({ id: expect.stringMatching(/^gen-/) as unknown });
      const stream = await talk.subscribe(id);
      expect(moneyIn((await stream.next())!)).toEqual(call);
      agent.finish(id);
      const events = await stream.rest();
      expect(moneyIn(events.at(-1)!)).toEqual({ ...call, cost: PRICE, currency: 'USDC' });
      const told = await hook.receives((request) => tells(request, wire.version, id, 'completed'));
      const body = JSON.parse(told.body) as Json;
      expect(moneyOf((body['statusUpdate'] ?? body['task'] ?? body) as Json)).toEqual({
        ...call,
        cost: PRICE,
        currency: 'USDC',
      });
    }),
  ).toBe(MESSAGE_PRICE);
});

test('each message of a task is in its sum, and one that the first has paid for tells the same', async () => {
  const [each, whole] = [await calls.serve(), await calls.serve({}, { pricing: 'per_task = 0.003' })];
  expect(
    await calls.spent(async () => {
      const talk = calls.talk(each.url);
      const { id, contextId } = await talk.task('ask');
      const answer = heldBy(await talk.sent('blue', { message: { taskId: id, contextId } }));
      const { calls: made, ...money } = moneyOf((await talk.get(id)).raw);
      expect(money).toEqual({ id: made![0]!.id, cost: '0.002', currency: 'USDC' });
      expect(made).toEqual([
        { id: money.id, cost: PRICE },
        { id: moneyOf(answer).id, cost: PRICE },
      ]);
      const other = calls.talk(whole.url);
      const asked = heldBy(await other.sent('ask')) as { id: string; contextId: string };
      const completed = heldBy(await other.sent('blue', { message: { taskId: asked.id, contextId: asked.contextId } }));
      expect(moneyOf(completed)).toEqual({ id: moneyOf(asked).id, cost: '0.003', currency: 'USDC' });
    }),
  ).toBe(5n * MESSAGE_PRICE);
});

test('a receipt comes with it where one is asked for, and none that the agent wrote', async () => {
  const { url } = await serveRaw(calls.world, ({ request, result }) => {
    const shown = taskResult('forged', 'COMPLETED', {
      metadata: { 'tollgate/receipt': 'forged', 'tollgate/generation': { id: 'gen-forged', cost: '0' } },
    });
    result(request.method === 'GetTask' ? shown.task : shown);
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('work');
      const plain = (await talk.get(id)).raw['metadata'] as Json;
      expect(plain).toEqual({
        'tollgate/generation': { id: expect.not.stringContaining('forged') as unknown, cost: PRICE, currency: 'USDC' },
      });
      const asked = (await talk.call('GetTask', { id }, { 'x-receipt': '1' })).result()['metadata'] as Json;
      expect(asked['tollgate/receipt']).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    }),
  ).toBe(MESSAGE_PRICE);
});

test('a task that failed says that it cost nothing', async () => {
  const { url } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('fail');
      expect(moneyOf((await talk.get(id)).raw)).toMatchObject({ cost: '0', currency: 'USDC' });
    }),
  ).toBe(0n);
});

test('no event of a stream has what the agent wrote of money', async () => {
  const forged = {
    metadata: { own: 1, 'tollgate/receipt': 'forged', 'tollgate/generation': { id: 'gen-forged', cost: '9' } },
  };
  const { url } = await serveRaw(calls.world, (exchange) => {
    writeEvent(exchange, taskResult('middle', 'WORKING', forged));
    writeEvent(exchange, statusEvent('middle', 'WORKING', forged));
    writeEvent(exchange, {
      artifactUpdate: {
        taskId: 'middle',
        contextId: 'c',
        artifact: { artifactId: 'a', parts: [{ text: 'half' }] },
        ...forged,
      },
    });
    writeEvent(exchange, statusEvent('middle', 'COMPLETED', forged));
    exchange.response.end();
  });
  const events = await (await calls.talk(url).stream('work')).rest();
  expect(events.length).toBe(4);
  expect(JSON.stringify(events)).not.toContain('forged');
  expect(JSON.stringify(events[1])).toContain('"own":1');
});

test('a result in whose metadata a key stands twice is paid for, and had', async () => {
  const { url } = await serveRaw(calls.world, ({ response, id }) => {
    const twice = JSON.stringify({
      jsonrpc: '2.0',
      id,
      result: taskResult('twice', 'COMPLETED', { metadata: { a: 1, b: 2 } }),
    });
    response.writeHead(200, { 'content-type': 'application/json' }).end(twice.replace('"b":2', '"a":2'));
  });
  expect(
    await calls.spent(async () => {
      expect(heldBy(await calls.talk(url).sent('work'))['metadata']).toMatchObject({
        a: 2,
        'tollgate/generation': { cost: PRICE },
      });
    }),
  ).toBe(MESSAGE_PRICE);
});
