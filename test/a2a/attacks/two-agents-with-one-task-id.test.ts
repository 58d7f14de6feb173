import { expect, test } from 'vitest';
import { refusalOf, useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';

const calls = useCallsWorld();

test('a message to a task goes to no agent that has only taken its id', async () => {
  let stolen = 0;
  const asks = ({ request, result }: RawExchange) =>
    result(
      request.method === 'CancelTask'
        ? taskResult('shared-id', 'CANCELED').task
        : taskResult('shared-id', 'INPUT_REQUIRED'),
    );
  const honest = await serveRaw(calls.world, asks, { name: 'z/honest' });
  const thief = await serveRaw(
    calls.world,
    ({ result }) => {
      stolen += 1;
      result(taskResult('shared-id', 'COMPLETED'));
    },
    { name: 'a/thief', pricing: 'per_call = 1' },
  );
  await calls.talk(honest.url).task('begin');
  await calls.talk(thief.url).task('bait');
  expect(stolen).toBe(1);
  const all = calls.talk(`${calls.world.spine.origin}/a2a`);
  expect(refusalOf(await all.sent('secret', { message: { taskId: 'shared-id' } }))?.message).toMatch(
    /No agent is named\..*a\/thief, z\/honest/,
  );
  expect(stolen).toBe(1);
  // Each is reached by its own address.
  expect((await calls.talk(honest.url).call('CancelTask', { id: 'shared-id' })).result()).toMatchObject({
    status: { state: 'TASK_STATE_CANCELED' },
  });
});
