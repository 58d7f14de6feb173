import { expect, test } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import type { Operation } from '../contract/client-calls.ts';
import { heldBy, MESSAGE_PRICE, refusalOf, RPC, useCallsWorld, WIRES } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld();

const OPERATIONS: readonly Operation[] = [
  'GetTask',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
];

/** The parameters of an operation on a task, in the form of a version. */
function paramsOf(operation: Operation, taskId: string, version: string): Record<string, unknown> {
  if (!operation.includes('Push')) return { id: taskId };
  const config = { id: 'c-1', url: 'https://client.example/hook' };
  if (operation.startsWith('Create'))
    return version === '1.0' ? { taskId, ...config } : { taskId, pushNotificationConfig: config };
  return version === '1.0' ? { taskId, id: 'c-1' } : { id: taskId, taskId, pushNotificationConfigId: 'c-1' };
}

/** Callers, and the key that began the task that they ask for. null: the unrestricted key of the account with money. */
const ASKERS = [
  { who: 'another account', begins: async () => null, asks: async () => calls.world.stranger.key },
  { who: 'a restricted key of the account', begins: async () => null, asks: () => restricted({ limit: 1n }) },
  {
    who: 'another restricted key of the account',
    begins: () => restricted({ requestsPerMinute: 600 }),
    asks: () => restricted({ expiresAt: Date.now() + 86_400_000 }),
  },
];

async function restricted(fields: Partial<NewKeyFields>): Promise<string> {
  const { spine } = calls.world;
  return (await spine.app.keys.create({ account: spine.account, label: 'restricted', kind: 'live', ...fields }))!.text;
}

const CASES = WIRES.flatMap((wire) => ASKERS.map((asker) => ({ ...asker, wire, name: wire.name })));

test.each(CASES)("$who gets the answers of an unknown id for another's task: $name", async ({ wire, begins, asks }) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const key = await asks();
  const theirs = calls.talk(url, wire, key);
  const owner = calls.talk(url, RPC, (await begins()) ?? undefined);
  const { id, contextId } = await owner.task('wait', { immediately: true });
  await agent.waits();
  const before = agent.asked.length;
  const unknown = 'c0ffee00-0000-4000-8000-000000000000';
  for (const operation of OPERATIONS) {
    const answers = [id, unknown].map(async (taskId) => {
      const reply = await theirs.call(operation, paramsOf(operation, taskId, wire.version));
      return { ...refusalOf(reply)!, text: reply.text.replaceAll(taskId, '<id>').replace(/"id":"[0-9a-f-]{36}"/, '') };
    });
    const [another, nobodys] = await Promise.all(answers);
    expect({ operation, code: another!.code, status: another!.status }).toEqual({
      operation,
      code: -32_001,
      status: wire.binding === 'JSONRPC' ? 200 : 404,
    });
    expect(another).toEqual(nobodys);
  }
  for (const more of [{ taskId: id }, { taskId: id, contextId }]) {
    expect(refusalOf(await theirs.sent('hello', { message: more }))?.code).toBe(-32_001);
    expect(refusalOf(await theirs.sent('hello', { message: { ...more, taskId: unknown } }))?.code).toBe(-32_001);
  }
  // The agent was asked nothing of all that, and the task goes on.
  expect(agent.asked.length).toBe(before);
  expect((await calls.talk(url, RPC, key).call('ListTasks', {})).result()).toMatchObject({ tasks: [] });
  expect((await calls.talk(url).get(id)).state).toBe('working');
  expect((await owner.get(id)).state).toBe('working');
  agent.finish(id);
  await calls.talk(url).reaches(id, 'completed');
});

test("a list has the account's own tasks alone, page by page", async () => {
  const { url } = await calls.serve();
  const [mine, theirs] = [calls.talk(url), calls.talk(url, RPC, calls.world.stranger.key)];
  const own = new Set<string>();
  for (const text of ['one', 'two', 'three', 'four', 'five']) own.add((await mine.task(`task ${text}`)).id);
  const foreign = await theirs.task('task six');
  const seen: string[] = [];
  let pageToken = '';
  for (let page = 0; page < 10; page += 1) {
    const list = (await mine.call('ListTasks', { pageSize: 2, pageToken })).result();
    expect(list['totalSize']).toBe(5);
    seen.push(...(list['tasks'] as { id: string }[]).map(({ id }) => id));
    pageToken = String(list['nextPageToken']);
    if (pageToken === '') break;
  }
  expect(seen).toHaveLength(5);
  expect(new Set(seen)).toEqual(own);
  // A page token of somebody else says where to go on, and not whose tasks.
  const { nextPageToken } = (await mine.call('ListTasks', { pageSize: 2 })).result();
  const theirPage = (await theirs.call('ListTasks', { pageToken: nextPageToken })).result();
  for (const { id } of theirPage['tasks'] as { id: string }[]) expect(id).toBe(foreign.id);
  expect((await theirs.call('ListTasks', {})).result()).toMatchObject({ totalSize: 1, tasks: [{ id: foreign.id }] });
  for (const params of [{ contextId: foreign.contextId }, { status: 'TASK_STATE_WORKING' }])
    expect((await mine.call('ListTasks', params)).result()).toMatchObject({ totalSize: 0, tasks: [] });
});

test('a list goes on after a task with a long id that is not Latin', async () => {
  let count = 0;
  const idOf = (number: number) => `${'頁'.repeat(255)}${number}`;
  const { url } = await serveRaw(calls.world, ({ request, result, error }) =>
    request.method === 'GetTask' ? error(-32_601, 'not shown') : result(taskResult(idOf((count += 1)), 'COMPLETED')),
  );
  const mine = calls.talk(url);
  for (const text of ['one', 'two', 'three']) await mine.task(text);
  const seen: string[] = [];
  let pageToken = '';
  do {
    const list = (await mine.call('ListTasks', { pageSize: 1, pageToken })).result();
    seen.push(...(list['tasks'] as { id: string }[]).map(({ id }) => id));
    pageToken = String(list['nextPageToken']);
  } while (pageToken !== '' && seen.length < 5);
  expect(seen.toSorted()).toEqual([idOf(1), idOf(2), idOf(3)]);
});

test('an agent that answers with the id of another task is refused, and is paid nothing', async () => {
  const { stranger } = calls.world;
  let says = taskResult('first', 'WORKING');
  // The gateway looks at the task by itself, too.
  let shown = taskResult('first', 'WORKING').task;
  const { url } = await serveRaw(calls.world, ({ request, result }) =>
    result(request.method === 'GetTask' ? shown : says),
  );
  const [mine, theirs] = [calls.talk(url), calls.talk(url, RPC, stranger.key)];
  const before = await calls.world.spine.balance();
  await mine.task('one');
  // Somebody else's.
  const theirBefore = await calls.world.spine.app.ledger.balance(`escrow:${stranger.account}`);
  for (const state of ['WORKING', 'COMPLETED', 'INPUT_REQUIRED']) {
    says = taskResult('first', state);
    expect((await theirs.sent(`two ${state}`)).error?.message).toMatch(/has the id of another/);
  }
  expect(await calls.world.spine.app.ledger.balance(`escrow:${stranger.account}`)).toEqual(theirBefore);
  // The account's own, asked for nothing of the kind.
  for (const state of ['WORKING', 'COMPLETED']) {
    says = taskResult('first', state);
    expect((await mine.sent(`three ${state}`)).error?.message).toMatch(/has the id of another/);
  }
  // A new one in place of the one that the message is for.
  says = taskResult('second', 'COMPLETED');
  expect((await mine.sent('four', { message: { taskId: 'first' } })).error?.message).toMatch(/another task/);
  expect(await calls.locked()).toBe(MESSAGE_PRICE);
  shown = taskResult('first', 'COMPLETED').task;
  await mine.get('first');
  expect(await calls.world.spine.balance()).toEqual({ available: before.available - MESSAGE_PRICE, locked: 0n });
});

test('an agent that tells of another task in the middle of a stream is heard no more; the task that it began is settled by its own end', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'GetTask') return exchange.result(taskResult('told', 'COMPLETED').task);
    writeEvent(exchange, taskResult('told', 'WORKING'));
    writeEvent(exchange, statusEvent('untold', 'COMPLETED'));
  });
  expect(
    await calls.spent(async () => {
      const talk = calls.talk(url);
      const stream = await talk.stream('work');
      expect(await stream.next()).toMatchObject({ id: 'told' });
      await expect(stream.next()).rejects.toThrow('broke off');
      expect((await talk.get('told')).state).toBe('completed');
      expect(refusalOf(await talk.call('GetTask', { id: 'untold' }))?.code).toBe(-32_001);
    }),
  ).toBe(MESSAGE_PRICE);
});

test('an agent that shows another task than it was asked for is refused', async () => {
  // From the beginning: the gateway looks at the task by itself, too.
  let shown = 'another';
  const { url } = await serveRaw(calls.world, ({ request, result }) =>
    result(
      request.method === 'GetTask' || request.method === 'CancelTask'
        ? taskResult(shown, 'COMPLETED').task
        : taskResult('asked', 'WORKING'),
    ),
  );
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      await talk.task('work');
      for (const operation of ['GetTask', 'CancelTask'] as const)
        expect((await talk.call(operation, { id: 'asked' })).error?.message).toMatch(/answered with another task/);
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      shown = 'asked';
      expect((await talk.get('asked')).state).toBe('completed');
    }),
  ).toBe(MESSAGE_PRICE);
});

test('two providers of one service: a task and its context stay with the one that began them, and neither can take a task of the other', async () => {
  const answers = (name: string) => (exchange: Parameters<Parameters<typeof serveRaw>[1]>[0]) => {
    const { request, result } = exchange;
    const { id, message } = request.params as { id?: string; message?: { taskId?: string; parts: [{ text: string }] } };
    if (id !== undefined)
      return result(taskResult(id, 'COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: name }] }] }).task);
    const text = message!.parts[0].text;
    return result(
      taskResult(
        text.startsWith('steal ') ? text.slice(6) : (message!.taskId ?? `${name}-${crypto.randomUUID()}`),
        'INPUT_REQUIRED',
      ),
    );
  };
  const name = 'shared/agent';
  const one = await serveRaw(calls.world, answers('one'), { name, provider: 'One' });
  const two = await serveRaw(calls.world, answers('two'), { name, provider: 'Two' });
  const talk = calls.talk(one.url);
  const began = new Map<string, { readonly id: string; readonly contextId: string }>();
  await calls.spent(async () => {
    // Each has earned its place.
    for (const { proxy } of [one, two])
      for (let turn = 0; turn < 3; turn += 1)
        await calls.talk(`${calls.world.spine.origin}/a2a/${proxy.id}:${name}`).task('work');
    for (let turn = 0; turn < 60 && began.size < 2; turn += 1) {
      const task = await talk.task('work');
      const [by] = task.id.split('-');
      if (!began.has(by!)) began.set(by!, task);
      await talk.get(task.id);
    }
    expect([...began.keys()].toSorted()).toEqual(['one', 'two']);
    for (const [by, { contextId }] of began) {
      for (let turn = 0; turn < 6; turn += 1) {
        const { id } = heldBy(await talk.sent('go on', { message: { contextId } }));
        expect(String(id).split('-')[0]).toBe(by);
        const shown = await talk.get(String(id));
        expect(shown.artifacts[0]!.parts[0]!.value).toBe(by);
      }
    }
    const [mine] = [await talk.task('work', { message: { contextId: began.get('one')!.contextId } })];
    // A stranger's call at the other provider is answered with the id of that task.
    const stolen = calls.talk(`${calls.world.spine.origin}/a2a/${two.proxy.id}:${name}`, RPC, calls.world.stranger.key);
    expect((await stolen.sent(`steal ${mine.id}`)).error?.message).toMatch(/has the id of another/);
    const own = calls.talk(`${calls.world.spine.origin}/a2a/${two.proxy.id}:${name}`);
    expect((await own.sent(`steal ${mine.id}`)).error?.message).toMatch(/has the id of another/);
    // By whatever name the service is called, its task is the same.
    expect((await own.get(mine.id)).artifacts[0]!.parts[0]!.value).toBe('one');
  });
});

test("a message that refers to another's task is refused, and one that refers to the account's own is not", async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const theirs = await calls.talk(url, RPC, calls.world.stranger.key).task('task secret');
  const mine = await calls.talk(url).task('task mine');
  const before = agent.asked.length;
  for (const wire of WIRES) {
    const talk = calls.talk(url, wire);
    for (const ids of [[theirs.id], [mine.id, theirs.id], ['nobodys']])
      expect(refusalOf(await talk.sent('hello', { message: { referenceTaskIds: ids } }))?.code, wire.name).toBe(
        -32_001,
      );
  }
  expect(agent.asked.length).toBe(before);
  expect((await calls.talk(url).task('task again', { message: { referenceTaskIds: [mine.id] } })).state).toBe(
    'completed',
  );
});
