import { describe, expect, test } from 'vitest';
import type { StreamResponse } from '@a2a-js/sdk';
import { PAIRS, useClientWorld } from './client-world.ts';
import { collect, saying, sendForTask, textOf } from './sdk-client.ts';

const { meet } = useClientWorld();

const kinds = (events: readonly StreamResponse[]) => events.map(({ payload }) => payload?.$case);
const chunks = (events: readonly StreamResponse[]) =>
  events.flatMap(({ payload }) => (payload?.$case === 'artifactUpdate' ? [textOf(payload.value.artifact)] : []));

describe.each(PAIRS)('$name', ({ kind, speaks }) => {
  test('streams a task from its beginning to its end', async () => {
    const { client } = await meet(kind, speaks);
    const events = await collect(client.sendMessageStream(saying('stream 3')));
    expect(kinds(events)[0]).toBe('task');
    expect(kinds(events).at(-1)).toBe('statusUpdate');
    expect(chunks(events)).toEqual(['chunk 1 ', 'chunk 2 ', 'chunk 3 ']);
  });

  test('streams a message as the one event', async () => {
    const { client } = await meet(kind, speaks);
    expect(kinds(await collect(client.sendMessageStream(saying('echo hi'))))).toEqual(['message']);
  });

  test('subscribes again to a task that goes on', async () => {
    const { client, agent } = await meet(kind, speaks);
    const { id } = await sendForTask(client, 'wait', { immediately: true });
    const stream = client.resubscribeTask({ tenant: '', id });
    const first = await stream.next();
    expect((first.value as StreamResponse).payload).toMatchObject({ $case: 'task', value: { id } });
    agent.progress(id, 'more ');
    agent.finish(id);
    const rest = await collect(stream);
    expect(chunks(rest)).toEqual(['more ', 'finished']);
    expect(kinds(rest).at(-1)).toBe('statusUpdate');
  });
});
