import { afterAll, beforeAll, expect, test } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../gateway/bridge/chat/support/scripted-model.ts';
import { modelToml } from '../../gateway/bridge/chat/support/toml.ts';
import { startAgentSpine, type AgentSpine } from '../../support/a2a-agent/index.ts';

// A model that is called as an agent, whose deltas come in one read: its client gets them as they were, one by one.

let model: ScriptedModel;
let world: AgentSpine;
beforeAll(async () => {
  model = await startScriptedModel();
  world = await startAgentSpine(modelToml(model.url, 'scripted/model'));
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
  await model.stop();
});

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'theirs', object: 'chat.completion.chunk', created: 1, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

interface Event {
  readonly task?: { readonly status: { readonly state: string } };
  readonly artifactUpdate?: { readonly append: boolean; readonly artifact: { readonly parts: readonly object[] } };
  readonly statusUpdate?: { readonly status: { readonly state: string } };
}

async function send(method: string): Promise<string> {
  const message = { messageId: method, role: 'ROLE_USER', parts: [{ text: 'rain?' }] };
  const response = await fetch(`${world.spine.origin}/a2a/model/scripted/model`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${world.spine.key}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } }),
  });
  expect(response.status).toBe(200);
  return response.text();
}

const WORDS = ['It ', '"rains"\n', '', 'and ', 'it ', 'rains', '\ud83d', '\ude00'];
const says = () =>
  model.says({
    raw: {
      type: 'text/event-stream',
      text: `${chunk({ reasoning: 'hm' })}${WORDS.map((content) => chunk({ content })).join('')}${chunk({}, 'stop')}data: [DONE]\n\n`,
    },
  });

test('in a stream each delta of the text is an event; reasoning and empty texts are none', async () => {
  says();
  const events = (await send('SendStreamingMessage'))
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => (JSON.parse(line.slice('data: '.length)) as { readonly result: Event }).result);
  const updates = events.flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
  expect(updates.map(({ artifact, append }) => [artifact.parts, append])).toEqual(
    WORDS.filter((text) => text !== '').map((text, index) => [[{ text }], index > 0]),
  );
  expect(events.at(0)!.task!.status.state).toBe('TASK_STATE_WORKING');
  expect(events.at(-1)!.statusUpdate!.status.state).toBe('TASK_STATE_COMPLETED');
  expect(events).toHaveLength(updates.length + 2);
});

test('in one piece the deltas are one text', async () => {
  says();
  expect(JSON.parse(await send('SendMessage'))).toMatchObject({
    result: { message: { parts: [{ text: 'It "rains"\nand it rains😀' }] } },
  });
});
