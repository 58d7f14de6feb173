import { expect, onTestFinished, test } from 'vitest';
import { startWebhook, tells, type Webhook } from '../contract/webhook.ts';
import type { Json } from '../contract/shapes.ts';
import { heldBy, LEGACY_RPC, MESSAGE_PRICE, refusalOf, RPC, useCallsWorld, WIRES } from './support/calls-world.ts';
import { asAgent, giftOf } from './support/nested.ts';
import { serveRaw, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld();

const saying = (messageId: string, more: object = {}) => ({ message: { messageId }, ...more });

/** An agent that answers the first request with its own error, and completes a task for the second. */
async function serveBusy() {
  let asked = 0;
  return serveRaw(
    calls.world,
    (exchange) => {
      asked += 1;
      const { response, id } = exchange;
      if (asked === 1)
        return void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_603, message: 'database busy' } }));
      if (exchange.request.body.includes('Stream'))
        return (writeEvent(exchange, taskResult('t', 'COMPLETED')), void response.end());
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: taskResult('t', 'COMPLETED') }));
    },
    { modern: true },
  );
}

test.each(WIRES)('a message whose agent answered with an error reaches the agent again: $name', async (wire) => {
  const { url } = await serveBusy();
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const first = await talk.sent('hello', saying('again'));
      expect(first.text).toContain('database busy');
      expect(heldBy(await talk.sent('hello', saying('again')))['id']).toBe('t');
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each([RPC, LEGACY_RPC])('and so does one that is sent as a stream: $name', async (wire) => {
  const { url } = await serveBusy();
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const refused = await talk
        .stream('hello', saying('streamed'))
        .then(
          (stream) => stream.rest(),
          (error: unknown) => error,
        )
        .catch((error: unknown) => error);
      expect(String(refused)).toContain('database busy');
      const events = await (await talk.stream('hello', saying('streamed'))).rest();
      expect(events.at(-1)).toMatchObject({ id: 't', state: 'completed' });
    }),
  ).toBe(MESSAGE_PRICE);
});

test('and one that comes by the endpoint of all methods', async () => {
  const { service } = await serveBusy();
  const { spine } = calls.world;
  const params = { agent: service, message: { messageId: 'rpc', role: 'ROLE_USER', parts: [{ text: 'hello' }] } };
  const send = async () =>
    (await (await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params })).json()) as Json;
  expect(
    await calls.spent(async () => {
      expect(await send()).toMatchObject({ error: { message: 'database busy' } });
      expect(await send()).toMatchObject({ result: { task: { id: 't' } } });
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each(WIRES)('of repeats at once after the error, one reaches the agent and is charged: $name', async (wire) => {
  let asked = 0;
  const repeats = 6;
  const answered = Promise.withResolvers<void>();
  const { url } = await serveRaw(
    calls.world,
    async ({ response, id }) => {
      asked += 1;
      const first = asked === 1;
      if (!first) await answered.promise;
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          ...(first
            ? { error: { code: -32_603, message: 'database busy' } }
            : { result: taskResult('t', 'COMPLETED') }),
        }),
      );
    },
    { modern: true },
  );
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      expect((await talk.sent('hello', saying('raced'))).text).toContain('database busy');
      let refused = 0;
      const sent = Array.from({ length: repeats }, async () => {
        const reply = await talk.sent('hello', saying('raced'));
        if (refusalOf(reply) !== null || reply.status === 409) refused += 1;
        // All others are refused while the one runs.
        if (refused === repeats - 1) answered.resolve();
        return reply;
      });
      const replies = await Promise.all(sent);
      expect(replies.filter(({ text }) => text.includes('still being answered'))).toHaveLength(repeats - 1);
      expect(heldBy(await talk.sent('hello', saying('raced')))['id']).toBe('t');
    }),
  ).toBe(MESSAGE_PRICE);
  expect(asked).toBe(2);
});

test('a message whose agent made calls before its error is not run again, and the repeat is told so at once', async () => {
  let asked = 0;
  const { url } = await serveRaw(
    calls.world,
    async (exchange) => {
      asked += 1;
      const { response, id } = exchange;
      expect(await asAgent(calls.world.spine, giftOf(exchange).metadata!.token).chat()).toMatchObject({ status: 200 });
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_603, message: 'database busy' } }));
    },
    { modern: true, pricing: 'per_call = 0.001\nnested_max = 0.05' },
  );
  const talk = calls.talk(url);
  const cost = await calls.spent(async () => {
    expect((await talk.sent('hello', saying('worked'))).text).toContain('database busy');
  });
  // The calls of the agent alone.
  expect(cost).toBeGreaterThan(0n);
  expect(cost).toBeLessThan(MESSAGE_PRICE);
  expect(
    await calls.spent(async () => {
      for (let time = 0; time < 2; time += 1) {
        const refused = refusalOf(await talk.sent('hello', saying('worked')));
        expect(refused).toMatchObject({ code: -32_014, message: expect.stringContaining('new messageId') as string });
        expect(refused!.message).not.toContain('still being answered');
      }
    }),
  ).toBe(0n);
  expect(asked).toBe(1);
});

async function hook(): Promise<Webhook> {
  const started = await startWebhook();
  onTestFinished(() => started.close());
  return started;
}

test.each([RPC, LEGACY_RPC])(
  'a repeat that names a webhook registers it on the task that it shows, once: $name',
  async (wire) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const webhook = await hook();
    const talk = calls.talk(url, wire);
    const name = wire === RPC ? 'taskPushNotificationConfig' : 'pushNotificationConfig';
    const pushed = saying('pushed', { immediately: true, configuration: { [name]: { url: webhook.url, token: 't' } } });
    const { id } = await talk.task('wait', saying('pushed', { immediately: true }));
    for (let time = 0; time < 3; time++) expect((await talk.task('wait', pushed)).id).toBe(id);
    const listed = (
      await talk.call('ListTaskPushNotificationConfigs', wire === RPC ? { taskId: id } : { id })
    ).result();
    expect((wire === RPC ? (listed['configs'] as unknown[]) : (listed as unknown as unknown[])).length).toBe(1);
    agent.finish(id);
    const version = wire === RPC ? '1.0' : '0.3';
    await webhook.receives((request) => tells(request, version, id, 'completed'));
  },
);

test.each([RPC, LEGACY_RPC])(
  'every notification of a message that is answered at once names its call, and the last one the cost: $name',
  async (wire) => {
    for (const pushes of [true, false]) {
      const { url, agent } = await calls.serve({ version: 'both', pushNotifications: pushes });
      const webhook = await hook();
      const talk = calls.talk(url, wire);
      const name = wire === RPC ? 'taskPushNotificationConfig' : 'pushNotificationConfig';
      const sent = await talk.sent('wait', { immediately: true, configuration: { [name]: { url: webhook.url } } });
      const task = heldBy(sent);
      const { id: call } = (task['metadata'] as Json)['tollgate/generation'] as Json;
      agent.finish(task['id'] as string);
      await calls.pollSoon();
      const version = wire === RPC ? '1.0' : '0.3';
      await webhook.receives((request) => tells(request, version, task['id'] as string, 'completed'));
      const generations = webhook.received.map(({ body }) => {
        const [held = {}] = wire === RPC ? Object.values(JSON.parse(body) as Json) : [JSON.parse(body)];
        return ((held as Json)['metadata'] as Json | undefined)?.['tollgate/generation'];
      });
      expect(generations.length).toBeGreaterThan(1);
      for (const generation of generations) expect(generation).toMatchObject({ id: call });
      expect(generations.at(-1)).toMatchObject({ id: call, cost: '0.001', currency: 'USDC' });
    }
  },
);

test('a part of 1.0 without content is refused before anything is sent', async () => {
  const { url, agent } = await calls.serve();
  for (const wire of [RPC, WIRES[2]]) {
    const talk = calls.talk(url, wire);
    const message = { messageId: 'empty', role: 'ROLE_USER', parts: [{}] };
    const reply = await talk.call('SendMessage', { message });
    expect(reply.error).toMatchObject({ code: -32_602, message: expect.stringContaining('text, raw, url, data') });
  }
  expect(agent.received.filter(({ body }) => body.includes('"parts"'))).toEqual([]);
});
