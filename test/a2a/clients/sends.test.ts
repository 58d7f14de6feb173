import { describe, expect, test } from 'vitest';
import { PAIRS, useClientWorld } from './client-world.ts';
import { isTask, saying, sendForTask, stateName, textOf } from './sdk-client.ts';

const { meet } = useClientWorld();

describe.each(PAIRS)('$name', ({ kind, speaks }) => {
  test('sends a message and reads the message that answers it', async () => {
    const { client } = await meet(kind, speaks);
    const answer = await client.sendMessage(saying('echo hello'));
    expect(isTask(answer)).toBe(false);
    expect(textOf(answer as never)).toBe('hello');
  });

  test('sends a message and reads the task that it became, with its artifact', async () => {
    const { client } = await meet(kind, speaks);
    const task = await sendForTask(client, 'task the result');
    expect(stateName(task)).toBe('TASK_STATE_COMPLETED');
    expect(textOf(task.artifacts[0])).toBe('the result');
  });

  test('goes on with a task that needs input', async () => {
    const { client } = await meet(kind, speaks);
    const asked = await sendForTask(client, 'ask');
    expect(stateName(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    expect(textOf(asked.status?.message)).toBe('Which one?');
    const done = await sendForTask(client, 'the red one', { taskId: asked.id, contextId: asked.contextId });
    expect(stateName(done)).toBe('TASK_STATE_COMPLETED');
    expect(textOf(done.artifacts[0])).toBe('answered: the red one');
  });

  test('reads a part of every kind', async () => {
    const { client } = await meet(kind, speaks);
    const { artifacts } = await sendForTask(client, 'parts');
    const parts = artifacts[0]!.parts;
    expect(parts.map(({ content }) => content?.$case)).toEqual(['text', 'raw', 'url', 'data']);
    expect(String(parts[1]!.content?.value)).toBe('the bytes');
    expect(parts[3]!.content?.value).toEqual({ answer: 42, list: [1, 'two', null] });
  });
});
