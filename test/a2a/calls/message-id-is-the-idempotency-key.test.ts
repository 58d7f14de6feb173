import { expect, test } from 'vitest';
import { heldBy, LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld, WIRES } from './support/calls-world.ts';
import { createTalk } from '../contract/client-calls.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld();

const sends = (received: readonly { readonly body: string }[]) =>
  received.filter(({ body }) => body.includes('"parts"') || body.includes('"content"')).length;
const saying = (messageId: string) => ({ message: { messageId } });

test.each(WIRES)('a message that is sent again has the same outcome, and is charged once: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      for (const text of ['echo hello', 'task hello']) {
        const first = await talk.sent(text, saying(`m ${text}`));
        const again = await talk.sent(text, saying(`m ${text}`));
        expect(again.status).toBe(200);
        expect(heldBy(again)).toEqual(heldBy(first));
      }
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(2);
});

test('the same message by JSON-RPC and then by HTTP+JSON, and the other way round', async () => {
  const { url, agent } = await calls.serve();
  const [rpc, rest] = [calls.talk(url), calls.talk(url, REST)];
  expect(
    await calls.spent(async () => {
      for (const [one, other] of [
        [rpc, rest],
        [rest, rpc],
      ] as const) {
        const more = saying(crypto.randomUUID());
        const first = await one.sent('task hello', more);
        expect(heldBy(await other.sent('task hello', more))).toEqual(heldBy(first));
      }
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(2);
});

test('twenty of it at once are one', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const more = saying('at once');
      const replies = await Promise.all(Array.from({ length: 20 }, () => talk.sent('slow 200', more)));
      const done = replies.filter(({ error }) => error === null);
      expect(done.length).toBeGreaterThan(0);
      expect(new Set(done.map((reply) => heldBy(reply)['id'])).size).toBe(1);
      // While the first is still being answered, the others are told so.
      for (const { error, text } of replies.filter((reply) => reply.error)) {
        expect(error!.message).toMatch(/still being answered/);
        expect(text).toMatch(/RetryInfo/);
      }
      expect(heldBy(await talk.sent('slow 200', more))['id']).toBe(heldBy(done[0]!)['id']);
    }),
  ).toBe(MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(1);
});

test('a message that says something else is another one, also with the same id', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const more = saying('twice');
  expect(
    await calls.spent(async () => {
      const ids = new Set<string>();
      for (const words of ['task one', 'task two', 'task one']) ids.add((await calls.talk(url).task(words, more)).id);
      expect(ids.size).toBe(2);
      // What is only said beside the words does not make it another one.
      const again = await calls.talk(url).task('task one', { message: { ...more.message, metadata: { attempt: 2 } } });
      expect(ids).toContain(again.id);
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(2);
});

test.each(WIRES)('the same id in another task or context is another message: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  const more = (of: object) => ({ message: { messageId: 'one id', ...of } });
  expect(
    await calls.spent(async () => {
      const { id, contextId } = heldBy(await talk.sent('ask', more({})));
      expect(heldBy(await talk.sent('blue', more({ taskId: id, contextId })))['id']).toBe(id);
      expect(heldBy(await talk.sent('task', more({ contextId })))['id']).not.toBe(id);
    }),
  ).toBe(3n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(3);
});

test.each(WIRES)('in one task, too, an id with other words is another message: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  const direct = createTalk({ url: `${agent.url}${wire.below}`, headers: {} }, wire.version, wire.binding);
  expect(
    await calls.spent(async () => {
      const { id, contextId } = heldBy(await talk.sent('ask', saying('question')));
      const more = { message: { messageId: 'answer', taskId: id, contextId } };
      for (const words of ['ask blue', 'ask green', 'done']) {
        const first = await talk.sent(words, more);
        expect(heldBy(first)['id'], first.text).toBe(id);
        // The same words are a repeat.
        expect(heldBy(await talk.sent(words, more))).toEqual(heldBy(first));
      }
      const historyOf = async (of: typeof talk, historyLength?: number) =>
        heldBy(await of.call('GetTask', { id, ...(historyLength === undefined ? {} : { historyLength }) }))['history'];
      for (const length of [undefined, 0, 1, 3, 100])
        expect(await historyOf(talk, length)).toEqual(await historyOf(direct, length));
      const said = JSON.stringify(await historyOf(talk));
      const places = ['"ask"', 'ask blue', 'ask green', '"done"'].map((words) => said.indexOf(words));
      expect(places, said).not.toContain(-1);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    }),
  ).toBe(4n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(4);
});

test('once its question was answered, or its task canceled, the same message begins another task', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const more = saying('asked again');
      const ids: string[] = [];
      for (const round of [0, 1, 2, 3]) {
        const { id, contextId } = await talk.task('ask', more);
        // Until then it is a repeat.
        expect((await talk.task('ask', more)).id).toBe(id);
        expect(ids).not.toContain(id);
        ids.push(id);
        if (round % 2 === 0) await talk.task('blue', { message: { taskId: id, contextId } });
        else expect((await talk.call('CancelTask', { id })).error).toBeNull();
      }
    }),
  ).toBe(6n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(6);
});

test("ids are each account's and each agent's own", async () => {
  const [one, other] = [await calls.serve(), await calls.serve()];
  const { stranger, spine } = calls.world;
  const more = saying('mine');
  expect(
    await calls.spent(async () => {
      const first = await calls.talk(one.url).task('task a', more);
      const theirs = await calls.talk(one.url, RPC, stranger.key).task('task b', more);
      const elsewhere = await calls.talk(other.url).task('task c', more);
      expect(new Set([first.id, theirs.id, elsewhere.id]).size).toBe(3);
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(await spine.faults()).toEqual([]);
});

test('a message that came to nothing is not kept: sent again, it is done', async () => {
  let broken = true;
  const { url, agent } = await serveRaw(calls.world, ({ result, response }) => {
    if (broken) return void response.writeHead(500).end('no');
    result(taskResult('done-at-last', 'COMPLETED'));
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      expect((await talk.sent('work', saying('again'))).error).not.toBeNull();
      broken = false;
      expect((await talk.task('work', saying('again'))).state).toBe('completed');
      await talk.task('work', saying('again'));
    }),
  ).toBe(MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(2);
});

test.each([RPC, LEGACY_RPC, REST])(
  'a stream that was read to its end shows its task when the message is sent again: $name',
  async (wire) => {
    const { url, agent } = await calls.serve({ version: 'both' });
    const talk = calls.talk(url, wire);
    expect(
      await calls.spent(async () => {
        const more = saying('streamed');
        const events = await (await talk.stream('stream 3', more)).rest();
        const again = await (await talk.stream('stream 3', more)).rest();
        expect(again).toHaveLength(1);
        expect(again[0]).toMatchObject({ type: 'task', state: 'completed', id: (events[0] as { id: string }).id });
        // And it may be asked for as a whole, too.
        expect(await talk.task('stream 3', more)).toMatchObject({ state: 'completed' });
      }),
    ).toBe(MESSAGE_PRICE);
    expect(sends(agent.received)).toBe(1);
  },
);

test.each([RPC, LEGACY_RPC, REST])('a stream whose task asks for something is not begun anew: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const more = saying('asks');
      const [first] = await (await talk.stream('ask', more)).rest();
      const { id, contextId } = first as { id: string; contextId: string };
      expect(await (await talk.stream('ask', more)).rest()).toMatchObject([
        { type: 'task', id, state: 'input-required' },
      ]);
      await talk.task('blue', { message: { taskId: id, contextId } });
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(2);
});

test('a stream that broke off is not begun anew: its task is shown', async () => {
  const { url, agent } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'GetTask') return exchange.result(taskResult('cut-1', 'COMPLETED').task);
    writeEvent(exchange, taskResult('cut-1', 'WORKING'));
    writeEvent(exchange, statusEvent('cut-1', 'WORKING'));
    setImmediate(() => exchange.response.destroy());
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const more = saying('cut');
      await expect((await talk.stream('work', more)).rest()).rejects.toThrow('broke off');
      expect(await (await talk.stream('work', more)).rest()).toMatchObject([
        { type: 'task', id: 'cut-1', state: 'completed' },
      ]);
    }),
  ).toBe(MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(1);
});

test('a client that left before the end may send its message again: it finds the task', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const more = saying('left');
      const stream = await talk.stream('wait', more);
      const id = await agent.waits();
      stream.leave();
      expect(await talk.task('wait', more)).toMatchObject({ id, state: 'working' });
      // As it is found when the gateway that had the message is gone: not for so long that the sweep deletes the row.
      await calls.world.spine.app.database.query(
        { name: 'test/died', text: "UPDATE idempotency SET expires_at = $1 WHERE state = 'running'" },
        [Date.now()],
      );
      expect(await talk.task('wait', more)).toMatchObject({ id, state: 'working' });
      agent.finish(id);
      await calls.world.spine.quiet();
      await talk.reaches(id, 'completed');
      await expect.poll(async () => (await talk.sent('wait', more)).error).toBeNull();
      expect(await talk.task('wait', more)).toMatchObject({ id, state: 'completed' });
    }),
  ).toBe(MESSAGE_PRICE);
  expect(sends(agent.received)).toBe(1);
});

const KEPT = {
  name: 'test/kept-a2a-answers',
  text: 'SELECT length(body) AS chars FROM idempotency WHERE body IS NOT NULL',
};

const NEWEST = {
  name: 'test/newest-a2a-answer',
  text: 'SELECT charged FROM idempotency ORDER BY created_at DESC, key LIMIT 1',
};

test('an answer that is too long or newer answers replaced it is not done again either: its task is shown, and of a message that it was given', async () => {
  const paid = await calls.serve();
  const free = await calls.serve({}, { pricing: 'per_call = 0' });
  expect(
    await calls.spent(async () => {
      for (const [{ url }, chars] of [
        [paid, 1_600_000],
        [free, 90_000],
      ] as const) {
        const talk = calls.talk(url);
        const first = await talk.task(`big ${chars}`, saying('long'));
        expect(await talk.task(`big ${chars}`, saying('long'))).toMatchObject({ id: first.id, state: 'completed' });
      }
      const words = `echo ${'a'.repeat(90_000)}`;
      expect(heldBy(await calls.talk(paid.url).sent(words, saying('message')))).toEqual(
        heldBy(await calls.talk(paid.url).sent(words, saying('message'))),
      );
      expect((await calls.talk(free.url).sent(words, saying('message'))).error).toBeNull();
      expect((await calls.talk(free.url).sent(words, saying('message'))).error?.message).toMatch(
        /too long or newer answers replaced it/,
      );
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(sends(paid.agent.received)).toBe(2);
  expect(sends(free.agent.received)).toBe(2);
  for (const { chars } of await calls.world.spine.app.database.query(KEPT))
    expect(Number(chars)).toBeLessThan(1_500_000);
});

// A key that counts as free is forgotten where newer answers need its room, and a repeat would run again.
test('a message whose task goes on counts as charged, and one that costs nothing does not', async () => {
  const paid = await calls.serve();
  const free = await calls.serve({}, { pricing: 'per_call = 0' });
  for (const [{ url }, charged] of [
    [paid, 1n],
    [free, 0n],
  ] as const) {
    const talk = calls.talk(url);
    const { id } = await talk.task('ask', saying(`goes on ${charged}`));
    const [newest] = await calls.world.spine.app.database.query(NEWEST);
    expect(newest).toEqual({ charged });
    await talk.call('CancelTask', { id });
  }
});
