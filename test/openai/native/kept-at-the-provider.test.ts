import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { message, response } from './support/transcripts.ts';
import { startWireUpstream, type WireUpstream } from './support/wire-upstream.ts';

// All consumers share the operator's account at a provider: no request reads from it, and none leaves anything there.

const NATIVE = 'acme/native';
let upstream: WireUpstream;
let spine: Spine;
beforeAll(async () => {
  upstream = await startWireUpstream();
  upstream.answer = ({ path }) => ({ text: path.endsWith('messages') ? message() : response() });
  const native = {
    provider: 'Acme',
    url: upstream.url,
    params: 'wires = ["messages", "responses"]\nforward = ["code_interpreter"]',
  };
  const block = modelBlock({ name: NATIVE, ...native });
  spine = await startSpine({
    toml: UNHURRIED + block.replace('[models.pricing]', 'input_modalities = ["text", "image"]\n[models.pricing]'),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const post = (path: string, body: object) =>
  fetch(`${spine.url}/${path}`, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ model: NATIVE, ...body }),
  });
const HI = { role: 'user', content: 'Hi' };
const messages = (more: object) => ['messages', { max_tokens: 50, messages: [HI], ...more }] as const;
const responses = (more: object) => ['responses', { max_output_tokens: 50, input: [HI], ...more }] as const;
const user = (...content: object[]) => [{ role: 'user', content }];

describe('is refused', () => {
  test.each([
    ['container', messages({ container: 'container_1' })],
    ['container', messages({ container: { id: 'container_1' } })],
    ['container.skills[0].skill_id', messages({ container: { skills: [{ type: 'custom', skill_id: 'skill_1' }] } })],
    [
      'messages[0].content[0].file_id',
      messages({ messages: user({ type: 'container_upload', file_id: 'file_1' }, { type: 'text', text: 'Hi' }) }),
    ],
    ['tools[0].container', responses({ tools: [{ type: 'code_interpreter', container: 'cntr_1' }] })],
    [
      'tools[0].container.file_ids',
      responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_1'] } }] }),
    ],
    ['tools[0].vector_store_ids', responses({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] })],
    [
      'input[1].output.file_id',
      responses({
        input: [
          HI,
          { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file_1' } },
        ],
      }),
    ],
    ['container', messages({ type: 'x_code_execution_output', container: 'container_1' })],
    [
      'input[1].container_id',
      responses({
        type: 'tool_use',
        input: [HI, { type: 'function_call', call_id: 'c', name: 'x', arguments: '{}', container_id: 'cntr_1' }],
      }),
    ],
    [
      'input[1].content[0].container_id',
      responses({
        input: [HI, { role: 'user', content: [{ type: 'input_text', text: 'Hi', container_id: 'cntr_1' }] }],
      }),
    ],
    [
      'input[1].container_id',
      responses({
        input: [HI, { type: 'function_call', call_id: 'c', name: 'x', arguments: '{}', container_id: 'cntr_1' }],
      }),
    ],
  ])('%s', async (param, [path, body]) => {
    const before = upstream.reached.length;
    const reply = await post(path, body);
    const text = await reply.text();
    expect([reply.status, text]).toEqual([
      400,
      expect.stringContaining(`${param} refers to something stored at a provider`),
    ]);
    expect(upstream.reached.length).toBe(before);
  });
});

test('data with such names passes', async () => {
  const call = { type: 'tool_use', id: 't', name: 'x', input: { file_id: 'file_1', container: 'a', file_ids: ['b'] } };
  const input_schema = { type: 'object', properties: { file_id: { type: 'string', default: 'x' } } };
  const made = [{ type: 'bash_code_execution_output', file_id: 'file_made' }];
  const reply = await post(
    'messages',
    messages({
      messages: [
        HI,
        { role: 'assistant', content: [call] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] },
        {
          role: 'assistant',
          content: [
            {
              type: 'bash_code_execution_tool_result',
              tool_use_id: 's',
              content: { type: 'bash_code_execution_result', stdout: '', content: made },
            },
          ],
        },
        HI,
      ],
      tools: [{ name: 'x', input_schema }],
      metadata: { file_id: 'mine' },
    })[1],
  );
  expect([reply.status, await reply.text()]).toEqual([200, expect.any(String)]);
  const annotations = [{ type: 'container_file_citation', container_id: 'c', file_id: 'f' }];
  const said = { type: 'output_text', text: 'a', annotations };
  const input = [
    HI,
    { type: 'message', role: 'assistant', content: [said] },
    { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA', file_id: null }] },
  ];
  const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }];
  expect((await post('responses', responses({ input, tools })[1])).status).toBe(200);
});

test('what ran in a container is sent back in words, without the name of the container', async () => {
  const environment = { type: 'container_reference', container_id: 'cntr_1' };
  const ran = [
    {
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      container_id: 'cntr_1',
      code: 'print(6*7)',
      outputs: [{ type: 'logs', logs: '42' }],
    },
    { type: 'shell_call', id: 'sh_1', call_id: 'call_1', action: { commands: ['ls'] }, environment },
    { type: 'shell_call_output', id: 'so_1', call_id: 'call_1', output: [{ stdout: 'a.txt', stderr: '' }] },
    {
      type: 'shell_call',
      id: 'sh_2',
      call_id: 'call_2',
      action: { commands: ['pwd'] },
      environment: { type: 'local' },
    },
    { type: 'shell_call_output', id: 'so_2', call_id: 'call_2', output: [{ stdout: '/', stderr: '' }] },
  ];
  const reply = await post('responses', responses({ input: [HI, ...ran, HI] })[1]);
  expect([reply.status, await reply.text()]).toEqual([200, expect.any(String)]);
  expect(reply.headers.get('x-tollgate-dropped')).toBe('container_id');
  const { text, body } = upstream.reached.at(-1)!;
  expect(text).not.toContain('cntr_1');
  const said = (content: string) => ({ role: 'assistant', content });
  expect(body['input']).toEqual([
    HI,
    said('[code_interpreter_call: {"code":"print(6*7)","outputs":[{"type":"logs","logs":"42"}]}]'),
    said('[shell_call: {"action":{"commands":["ls"]}}]'),
    said('[shell_call_output: {"output":[{"stdout":"a.txt","stderr":""}]}]'),
    ran[3],
    ran[4],
    HI,
  ]);
});

test.each([[undefined], [true], [null]])('nothing is stored where store is %s', async (store) => {
  const ids = { type: 'reasoning', id: 'rs_1', summary: [] };
  const sealed = { ...ids, encrypted_content: 'gAAAAB' };
  const open = { ...ids, content: [{ type: 'reasoning_text', text: 'Hm.' }] };
  const reply = await post('responses', responses({ store, input: [HI, ids, sealed, open] })[1]);
  await reply.text();
  // Without `store` a provider does not find an item by its id.
  expect(upstream.reached.at(-1)!.body).toMatchObject({ store: false, input: [HI, sealed, open] });
});
