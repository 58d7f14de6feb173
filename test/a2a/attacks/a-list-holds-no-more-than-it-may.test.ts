import { expect, test } from 'vitest';
import { useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';

const calls = useCallsWorld();

test('a task that is larger than a list may hold of one is shown by what is noted of it', async () => {
  const sizes: Readonly<Record<string, number>> = { small: 10, huge: 9 * 1024 * 1024 };
  const { url } = await serveRaw(calls.world, ({ result, request }) => {
    const { id, message } = request.params as {
      readonly id?: string;
      readonly message?: { readonly parts: readonly [{ readonly text: string }] };
    };
    if (message) return result(taskResult(message.parts[0].text, 'COMPLETED'));
    result(
      taskResult(id!, 'COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(sizes[id!]!) }] }] })
        .task,
    );
  });
  const talk = calls.talk(url);
  for (const id of Object.keys(sizes)) await talk.task(id);
  const { tasks } = (await talk.call('ListTasks', { includeArtifacts: true })).result() as {
    readonly tasks: readonly {
      readonly id: string;
      readonly status: { readonly state: string };
      readonly artifacts?: readonly unknown[];
    }[];
  };
  expect(tasks.map(({ id, status, artifacts }) => [id, status.state, artifacts?.length ?? 0])).toEqual([
    ['huge', 'TASK_STATE_COMPLETED', 0],
    ['small', 'TASK_STATE_COMPLETED', 1],
  ]);
});
