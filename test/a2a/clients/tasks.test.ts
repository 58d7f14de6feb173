import { describe, expect, test } from 'vitest';
import { TaskNotCancelableError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { PAIRS, useClientWorld } from './client-world.ts';
import { sendForTask, stateName, textOf } from './sdk-client.ts';

const { meet } = useClientWorld();

describe.each(PAIRS)('$name', ({ kind, speaks }) => {
  test('gets a task', async () => {
    const { client } = await meet(kind, speaks);
    const { id } = await sendForTask(client, 'task the result');
    const task = await client.getTask({ tenant: '', id });
    expect(stateName(task)).toBe('TASK_STATE_COMPLETED');
    expect(textOf(task.artifacts[0])).toBe('the result');
  });

  test('cancels a task', async () => {
    const { client, agent } = await meet(kind, speaks);
    const { id } = await sendForTask(client, 'wait', { immediately: true });
    expect(stateName(await client.cancelTask({ tenant: '', id, metadata: undefined }))).toBe('TASK_STATE_CANCELED');
    expect(agent.waiting).not.toContain(id);
  });

  test('is told by the error of its SDK what is not possible', async () => {
    const { client } = await meet(kind, speaks);
    await expect(client.getTask({ tenant: '', id: 'no-such-task' })).rejects.toBeInstanceOf(TaskNotFoundError);
    const { id } = await sendForTask(client, 'task x');
    await expect(client.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toBeInstanceOf(
      TaskNotCancelableError,
    );
  });
});
