import { expect, test } from 'vitest';
import { MESSAGE_PRICE, refusalOf, useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';

const calls = useCallsWorld();

/** As many webhooks as an account may have. */
const FILL = {
  name: 'test/fill-webhooks',
  text: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO webhooks (id, account, run, primitive, service, task_id, name, form, receiver, sealed, created_at, expires_at)
SELECT 'fill-' || i, $1, '', 'agent', 'other/agent', 'task-' || i, 'n', '1.0', 'http://127.0.0.1:9', '', 0, 9000000000000000 FROM n`,
};

const HOOK = { taskPushNotificationConfig: { url: 'http://127.0.0.1:9/hook' } };

test('work whose webhook cannot be kept is paid all the same', async () => {
  const { spine } = calls.world;
  await spine.app.database.query(FILL, [spine.account]);
  let state = 'WORKING';
  const { url } = await serveRaw(calls.world, ({ result, request }) => {
    const { task } = taskResult('t-1', state);
    result(request.method === 'SendMessage' ? { task } : task);
  });
  const talk = calls.talk(url);
  const spent = await calls.spent(async () => {
    const reply = await talk.sent('work', { immediately: true, configuration: HOOK });
    expect(refusalOf(reply)?.message).toMatch(/The task continues.*too many push notification configurations/);
    expect(await calls.locked()).toBe(MESSAGE_PRICE);
    state = 'COMPLETED';
    expect((await talk.get('t-1')).state).toBe('completed');
  });
  expect(spent).toBe(MESSAGE_PRICE);
});

test('and what is at its end at once is answered, and paid', async () => {
  const { url } = await serveRaw(calls.world, ({ result }) => result(taskResult('t-2', 'COMPLETED')));
  const spent = await calls.spent(async () => {
    const reply = await calls.talk(url).sent('work', { configuration: HOOK });
    expect(refusalOf(reply)).toBeNull();
  });
  expect(spent).toBe(MESSAGE_PRICE);
});
