import { TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';
import { collect, connect, isTask, saying, sendForTask, stateName, textOf } from '../../a2a/clients/sdk-client.ts';

let demo: DemoProvider;
beforeAll(async () => {
  demo = await runDemoProvider({ roll: () => 4 });
});
afterAll(() => demo.close());

const KINDS = ['1.0 over JSON-RPC', '0.3 over JSON-RPC'] as const;
const WORDS = [
  '2d6: 4 + 4 = 8',
  '8 is above the 7 that was to be expected.',
  'I rolled by myself, as no run token came with the message.',
].join('');

describe.each(KINDS)('a client of %s', (kind) => {
  let client: Client;
  beforeAll(async () => {
    client = await connect(kind, demo.agentUrl, 'unused');
  });

  it('reads the card and has dice rolled', async () => {
    const task = await sendForTask(client, 'Roll 2d6, please');
    expect(stateName(task)).toBe('TASK_STATE_COMPLETED');
    expect(textOf(task.artifacts[0])).toBe(WORDS);
    expect(task.artifacts[0]!.parts[1]!.content).toEqual({
      $case: 'data',
      value: { dice: '2d6', rolls: [4, 4], total: 8 },
    });
  });

  it('is told as it happens', async () => {
    const events = await collect(client.sendMessageStream(saying('2d6')));
    expect(events.map(({ payload }) => payload?.$case)).toEqual([
      'task',
      'statusUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'statusUpdate',
    ]);
    const pieces = events.flatMap(({ payload }) => (payload?.$case === 'artifactUpdate' ? [payload.value] : []));
    expect(pieces.map(({ append, lastChunk }) => [append, lastChunk])).toEqual([
      [false, false],
      [true, true],
    ]);
    expect(pieces.map(({ artifact }) => textOf(artifact)).join('')).toBe(WORDS);
  });

  it('is asked which dice, and says it in the same task', async () => {
    const asked = await sendForTask(client, 'Hello');
    expect([stateName(asked), textOf(asked.status?.message)]).toEqual([
      'TASK_STATE_INPUT_REQUIRED',
      expect.stringMatching(/^Which dice\?/),
    ]);
    const { id: taskId, contextId } = asked;
    const answered = await client.sendMessage(saying('d20', { taskId, contextId }));
    expect(isTask(answered) && [answered.id, stateName(answered), textOf(answered.artifacts[0])]).toEqual([
      taskId,
      'TASK_STATE_COMPLETED',
      expect.stringMatching(/^d20: 4/),
    ]);
  });

  it('leaves a task to itself, and looks at it', async () => {
    const { id, status } = await sendForTask(client, 'Roll 2d6', { immediately: true });
    expect(status?.state).toBe(TaskState.TASK_STATE_SUBMITTED);
    await vi.waitFor(
      async () =>
        expect(stateName(await client.getTask({ id, tenant: '', historyLength: undefined }))).toBe(
          'TASK_STATE_COMPLETED',
        ),
      { timeout: 60_000 },
    );
  });

  it('is told again of a task that it had left', async () => {
    const { id: taskId, contextId } = await sendForTask(client, 'Hello');
    const events = client.resubscribeTask({ id: taskId, tenant: '' });
    const first = await events.next();
    expect(first.value?.payload).toMatchObject({
      $case: 'task',
      value: { id: taskId, status: { state: TaskState.TASK_STATE_INPUT_REQUIRED } },
    });
    await client.sendMessage(saying('d20', { taskId, contextId }));
    const rest = await collect(events);
    expect(rest.at(-1)?.payload).toMatchObject({
      $case: 'statusUpdate',
      value: { status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
  });

  it('calls a task off that waits for it', async () => {
    const { id } = await sendForTask(client, 'Hello');
    expect(stateName(await client.cancelTask({ id, tenant: '', metadata: undefined }))).toBe('TASK_STATE_CANCELED');
    await expect(client.cancelTask({ id, tenant: '', metadata: undefined })).rejects.toThrow('The task is canceled');
  });

  it('is refused dice that there are not', async () => {
    const task = await sendForTask(client, '0d6');
    expect([stateName(task), textOf(task.status?.message)]).toEqual([
      'TASK_STATE_REJECTED',
      expect.stringContaining('1 to 100 dice'),
    ]);
  });
});
