import { expect, test } from 'vitest';
import { refusalOf, RPC, useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw } from '../calls/support/raw-served.ts';

const calls = useCallsWorld();

/** An agent that remembers by context, and takes the contexts that it is given. */
async function serveKeeping() {
  const asked: (string | undefined)[] = [];
  const served = await serveRaw(calls.world, ({ result, request }) => {
    const { message } = request.params as { readonly message: { readonly contextId?: string } };
    asked.push(message.contextId);
    const contextId = message.contextId ?? crypto.randomUUID();
    result({ task: { id: crypto.randomUUID(), contextId, status: { state: 'TASK_STATE_COMPLETED' } } });
  });
  return { ...served, asked };
}

const chat = (service: string, key: string, more: object) =>
  calls.world.spine.post(
    '/chat/completions',
    { model: `a2a/${service}`, messages: [{ role: 'user', content: 'x' }], ...more },
    { authorization: `Bearer ${key}` },
  );

test('nobody speaks in a context that another account began, by whatever door', async () => {
  const { spine, stranger } = calls.world;
  const { url, service, asked } = await serveKeeping();
  const { contextId } = await calls.talk(url).task('mine');
  expect((await calls.talk(url).task('again', { message: { contextId } })).contextId).toBe(contextId);
  expect(asked).toHaveLength(2);
  expect(
    refusalOf(await calls.talk(url, RPC, stranger.key).sent('theirs', { message: { contextId } }))?.message,
  ).toMatch(/context does not exist/);
  expect((await chat(service, stranger.key, { tollgate: { context_id: contextId } })).status).toBe(400);
  expect(asked).toHaveLength(2);
  expect((await chat(service, spine.key, { tollgate: { context_id: contextId } })).status).toBe(200);
});

test('nor when its tasks were removed, as they are some time after their end', async () => {
  const { spine, stranger } = calls.world;
  const { url, asked } = await serveKeeping();
  const { contextId } = await calls.talk(url).task('mine');
  await spine.app.database.query(
    { name: 'test/remove-tasks', text: 'DELETE FROM tasks WHERE context_id = $1 RETURNING task_id' },
    [contextId],
  );
  const theirs = await calls.talk(url, RPC, stranger.key).sent('theirs', { message: { contextId } });
  expect(refusalOf(theirs)?.message).toMatch(/context does not exist/);
  expect(asked).toHaveLength(1);
  expect((await calls.talk(url).task('again', { message: { contextId } })).contextId).toBe(contextId);
});

test('nor in a context of answers without a task', async () => {
  const { stranger } = calls.world;
  const contextId = crypto.randomUUID();
  const { url } = await serveRaw(calls.world, ({ result }) =>
    result({ message: { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', contextId, parts: [{ text: 'yes' }] } }),
  );
  const mine = calls.talk(url);
  const theirs = calls.talk(url, RPC, stranger.key);
  expect(refusalOf(await mine.sent('a'))).toBeNull();
  expect(refusalOf(await theirs.sent('b', { message: { contextId } }))?.message).toMatch(/context does not exist/);
  expect(refusalOf(await mine.sent('c', { message: { contextId } }))).toBeNull();
});

test('sessions of two accounts that are called alike are two contexts', async () => {
  const { spine, stranger } = calls.world;
  const { service, asked } = await serveKeeping();
  for (const key of [spine.key, spine.key, stranger.key])
    expect((await chat(service, key, { session_id: '1' })).status).toBe(200);
  expect(asked[0]).toBe(asked[1]);
  expect(asked[2]).not.toBe(asked[0]);
  expect(asked).not.toContain('1');
});

test('a context is found among any number of tasks', async () => {
  const { spine } = calls.world;
  const plan = await spine.app.database.query(
    {
      name: 'test/plan',
      text: `EXPLAIN QUERY PLAN SELECT offer_id FROM tasks WHERE context_id = $1 AND account = $2 ORDER BY updated_at DESC LIMIT 1`,
    },
    ['c', 'a'],
  );
  expect(JSON.stringify(plan.map((row) => row['detail']))).toContain('tasks_context');
});
