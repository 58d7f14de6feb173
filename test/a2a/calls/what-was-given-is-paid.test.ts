import { expect, test } from 'vitest';
import { METERED } from './support/metered.ts';
import { costOf, LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

// A client that cancels a task, or leaves it waiting for ever, pays for what the task has given until then.

const calls = useCallsWorld();

/** How the call under which the account's last task was begun is on record. */
async function lastCall(): Promise<{
  readonly outcome: string;
  readonly finish_reason: string;
  readonly cost_micro_usdc: number;
}> {
  const { spine } = calls.world;
  const [row] = await spine.app.database.query({
    name: 'test/last-call',
    text: 'SELECT call_id FROM task_calls ORDER BY created_at DESC, position DESC LIMIT 1',
  });
  return (await spine.generation(row!['call_id'] as string)) as never;
}

test.each([RPC, LEGACY_RPC, REST])(
  'canceled after a part of its artifact was streamed, it costs its price: $name',
  async (wire) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const talk = calls.talk(url, wire);
    expect(
      await calls.spent(async () => {
        const stream = await talk.stream('wait');
        const id = await agent.waits();
        for (let chapter = 1; chapter <= 3; chapter++) agent.progress(id, `chapter ${chapter} `);
        for (let heard = ''; !heard.includes('chapter 3');) heard += JSON.stringify(await stream.next());
        expect((await talk.call('CancelTask', { id })).status).toBe(200);
        // Settled before the answer: nobody waits here.
        expect(await calls.locked()).toBe(0n);
        await stream.rest();
      }),
    ).toBe(MESSAGE_PRICE);
    expect(await lastCall()).toMatchObject({
      outcome: 'cut',
      finish_reason: 'canceled',
      cost_micro_usdc: Number(MESSAGE_PRICE),
    });
  },
);

test('canceled after its artifact was shown to who asked for the task, it costs its price', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('wait', { immediately: true });
      agent.progress(await agent.waits(), 'all of it');
      await expect.poll(async () => JSON.stringify(await talk.get(id))).toContain('all of it');
      await talk.call('CancelTask', { id });
    }),
  ).toBe(MESSAGE_PRICE);
});

test('a task that says what it is at and is canceled before it gives anything costs nothing', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    const { request, result } = exchange;
    if (request.method === 'CancelTask') return result(taskResult('t-busy', 'CANCELED').task);
    writeEvent(exchange, taskResult('t-busy', 'WORKING'));
    writeEvent(exchange, {
      statusUpdate: {
        taskId: 't-busy',
        contextId: 'context-of-t-busy',
        status: {
          state: 'TASK_STATE_WORKING',
          message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'looking it up' }] },
        },
      },
    });
    writeEvent(exchange, {
      artifactUpdate: { taskId: 't-busy', contextId: 'context-of-t-busy', artifact: { artifactId: 'a', parts: [] } },
    });
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('work');
      for (let heard = ''; !heard.includes('artifactId');) heard += JSON.stringify(await stream.next());
      await talk.call('CancelTask', { id: 't-busy' });
      stream.leave();
    }),
  ).toBe(0n);
});

test.each([
  ['ask', 'answered with a question', MESSAGE_PRICE],
  ['auth', 'asked for credentials', 0n],
] as const)('a task that was canceled after it %s (%s) costs what that is worth', async (text, _what, price) => {
  const { url } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task(text);
      await talk.call('CancelTask', { id });
    }),
  ).toBe(price);
});

test.each(['failed', 'rejected'] as const)(
  'a task that is %s by its own words is free, whatever it gave before',
  async (state) => {
    const { url, agent } = await calls.serve();
    const talk = calls.talk(url);
    expect(
      await calls.spent(async () => {
        const stream = await talk.stream('wait');
        const id = await agent.waits();
        agent.progress(id, 'half of it');
        for (let heard = ''; !heard.includes('half of it');) heard += JSON.stringify(await stream.next());
        agent.finish(id, state);
        await stream.rest();
      }),
    ).toBe(0n);
  },
);

test('a message whose answer is a canceled task with an artifact costs its price, and says so', async () => {
  const artifacts = [{ artifactId: 'a', parts: [{ text: 'half of it' }] }];
  const { url } = await serveRaw(calls.world, ({ result }) => result(taskResult('t-half', 'CANCELED', { artifacts })), {
    pricing: 'per_call = 0.001',
  });
  const talk = calls.talk(url, RPC);
  expect(
    await calls.spent(async () => {
      expect(costOf(await talk.sent('work'))).toBe('0.001');
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each([
  ['as it reports', { metadata: { 'tollgate/usage': { prompt: 1_000 }, notes: 'x'.repeat(1_000) } }, 3_000n],
  ['its price for each message, where it reports nothing', {}, 1_000n],
])('priced by its use, a task that is canceled after output costs %s', async (_name, report, price) => {
  const taskId = `t-used-${price}`;
  const { url } = await serveRaw(
    calls.world,
    (exchange) => {
      if (exchange.request.method === 'CancelTask') return exchange.result(taskResult(taskId, 'CANCELED', report).task);
      writeEvent(exchange, taskResult(taskId, 'WORKING'));
      writeEvent(exchange, {
        artifactUpdate: {
          taskId,
          contextId: `context-of-${taskId}`,
          artifact: { artifactId: 'a', parts: [{ text: 'half' }] },
        },
      });
    },
    { ...METERED, pricing: 'per_call = 0.001\nprompt = 2\nper_call_max = 0.05' },
  );
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('work');
      for (let heard = ''; !heard.includes('half');) heard += JSON.stringify(await stream.next());
      await talk.call('CancelTask', { id: taskId });
      stream.leave();
    }),
  ).toBe(price);
});

test('what an agent streams after its task was canceled at another door is given to nobody, as nobody pays it', async () => {
  let say = (_text: string) => {};
  const { url } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'CancelTask') return exchange.result(taskResult('t-late', 'CANCELED').task);
    writeEvent(exchange, taskResult('t-late', 'WORKING'));
    say = (text) =>
      writeEvent(exchange, {
        artifactUpdate: {
          taskId: 't-late',
          contextId: 'context-of-t-late',
          artifact: { artifactId: 'a', parts: [{ text }] },
        },
      });
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('work');
      await stream.next();
      await talk.call('CancelTask', { id: 't-late' });
      say('all of it');
      await expect(stream.rest()).rejects.toThrow('The task is canceled');
      expect(JSON.stringify(stream.wire)).not.toContain('all of it');
    }),
  ).toBe(0n);
});

test('an event of a state alone is no output', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'CancelTask') return exchange.result(taskResult('t-ask', 'CANCELED').task);
    writeEvent(exchange, taskResult('t-ask', 'WORKING'));
    writeEvent(exchange, statusEvent('t-ask', 'INPUT_REQUIRED'));
    exchange.response.end();
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      await (await talk.stream('work')).rest();
      await talk.call('CancelTask', { id: 't-ask' });
    }),
  ).toBe(0n);
});
