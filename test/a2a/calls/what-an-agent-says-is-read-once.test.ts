import { describe, expect, test } from 'vitest';
import { useCallsWorld } from './support/calls-world.ts';
import { BRIDGES } from './support/endpoints.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';

// An agent shows its task more than once, and puts its words into artifacts and status messages. Whoever reads a
// text gets each of them once, apart.

const calls = useCallsWorld();
let begun = 0;

const message = (text: string, messageId = `m-${text}`) => ({
  message: { messageId, role: 'ROLE_AGENT', parts: [{ text }] },
});
const status = (state: string, text: string, messageId?: string) => ({
  status: { state: `TASK_STATE_${state}`, ...message(text, messageId) },
});
const artifact = (taskId: string, artifactId: string, text: string) => ({
  artifactUpdate: { taskId, contextId: `context-of-${taskId}`, artifact: { artifactId, parts: [{ text }] } },
});

/** An agent that answers a message by these events, and another message by those of `then`. */
async function says(
  events: (taskId: string) => readonly object[],
  then: (taskId: string) => readonly object[] = () => [],
) {
  const taskId = `t-once-${(begun += 1)}`;
  const answer = (exchange: RawExchange) => {
    if (exchange.request.method === 'CancelTask') return exchange.result(taskResult(taskId, 'CANCELED').task);
    const asked = JSON.parse(exchange.request.body) as {
      readonly params: { readonly message: { readonly taskId?: string } };
    };
    for (const event of (asked.params.message.taskId === undefined ? events : then)(taskId))
      writeEvent(exchange, event);
    exchange.response.end();
  };
  const { service } = await serveRaw(calls.world, answer, { pricing: 'per_task = 0.001' });
  return { service, taskId };
}

describe.each(BRIDGES)('$name', (door) => {
  test('an artifact and what the agent says beside it are two lines', async () => {
    const { service } = await says((id) => [
      taskResult(id, 'WORKING'),
      artifact(id, 'a', 'Nine '),
      { artifactUpdate: { ...artifact(id, 'a', 'degrees').artifactUpdate, append: true } },
      artifact(id, 'b', 'and rain'),
      statusEvent(id, 'COMPLETED', status('COMPLETED', 'I looked twice.')),
    ]);
    const told = await door.ask(calls, service);
    const text = 'Nine degrees\nand rain\nI looked twice.';
    expect(told).toMatchObject({ said: text, state: 'completed', finish: 'stop' });
    if (told.structured !== null) expect(told.structured).toBe(text);
  });

  test('what is said twice, by an artifact and by the status, is read once', async () => {
    const { service } = await says((id) => [
      taskResult(id, 'WORKING'),
      artifact(id, 'a', 'You said: Hi'),
      statusEvent(id, 'COMPLETED', status('COMPLETED', 'You said: Hi')),
    ]);
    expect(await door.ask(calls, service)).toMatchObject({ said: 'You said: Hi', state: 'completed' });
  });

  test('the question of before is not read again in front of the answer', async () => {
    const asks = (id: string) =>
      taskResult(id, 'INPUT_REQUIRED', status('INPUT_REQUIRED', 'What colour?', 'm-question'));
    const { service, taskId } = await says(
      (id) => [taskResult(id, 'WORKING'), asks(id)],
      (id) => [asks(id), artifact(id, 'a', 'You said: blue'), statusEvent(id, 'COMPLETED')],
    );
    expect(await door.ask(calls, service)).toMatchObject({
      said: 'What colour?',
      state: 'input-required',
      costPending: true,
      cost: null,
      taskId,
    });
    expect(await door.ask(calls, service, () => {}, taskId)).toMatchObject({
      said: 'You said: blue',
      state: 'completed',
      costPending: false,
    });
  });

  test('what was given before the question is not read again either', async () => {
    const asks = (id: string) =>
      taskResult(id, 'INPUT_REQUIRED', {
        ...status('INPUT_REQUIRED', 'More?'),
        artifacts: [{ artifactId: 'a', parts: [{ text: 'half' }] }],
      });
    const { service, taskId } = await says(
      (id) => [taskResult(id, 'WORKING'), artifact(id, 'a', 'half'), asks(id)],
      (id) => [asks(id), artifact(id, 'b', 'the rest'), statusEvent(id, 'COMPLETED')],
    );
    expect(await door.ask(calls, service)).toMatchObject({ said: 'half\nMore?', state: 'input-required' });
    expect(await door.ask(calls, service, () => {}, taskId)).toMatchObject({ said: 'the rest', state: 'completed' });
  });

  test('an agent that does not stream shows all of its task with each answer: what is new is read', async () => {
    const taskId = `t-once-${(begun += 1)}`;
    const first = { artifactId: 'a', parts: [{ text: 'half' }] };
    const asks = { ...status('INPUT_REQUIRED', 'More?', 'm-more'), artifacts: [first] };
    const ended = { artifacts: [first, { artifactId: 'b', parts: [{ text: 'the rest' }] }] };
    const answer = ({ request, result }: RawExchange) => {
      if (request.method === 'GetTask') return result(taskResult(taskId, 'INPUT_REQUIRED', asks).task);
      const { message: sent } = request.params as { readonly message: { readonly taskId?: string } };
      return result(
        sent.taskId === undefined ? taskResult(taskId, 'INPUT_REQUIRED', asks) : taskResult(taskId, 'COMPLETED', ended),
      );
    };
    const { service } = await serveRaw(calls.world, answer, { pricing: 'per_task = 0.001', streaming: false });
    expect(await door.ask(calls, service)).toMatchObject({ said: 'half\nMore?', state: 'input-required' });
    expect(await door.ask(calls, service, () => {}, taskId)).toMatchObject({ said: 'the rest', state: 'completed' });
  });

  test('another question is read where the agent says nothing else', async () => {
    const asks = (id: string, text: string) => taskResult(id, 'INPUT_REQUIRED', status('INPUT_REQUIRED', text));
    const { service, taskId } = await says(
      (id) => [asks(id, 'What colour?')],
      (id) => [asks(id, 'Which shade?')],
    );
    expect(await door.ask(calls, service)).toMatchObject({ said: 'What colour?', state: 'input-required' });
    expect(await door.ask(calls, service, () => {}, taskId)).toMatchObject({
      said: 'Which shade?',
      state: 'input-required',
    });
    await calls.talk(`${calls.world.spine.origin}/a2a/${service}`).call('CancelTask', { id: taskId });
  });
});
