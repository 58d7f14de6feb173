import type OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDemo } from './demo-client.ts';

let started: Awaited<ReturnType<typeof startDemo>>;
beforeAll(async () => {
  started = await startDemo();
});
afterAll(() => started.demo.close());

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'get_current_weather',
      parameters: {
        type: 'object',
        properties: {
          city: { type: 'string' },
          unit: { enum: ['celsius', 'fahrenheit'] },
          days: { type: 'integer', minimum: 1, maximum: 7 },
        },
        required: ['city', 'days'],
      },
    },
  },
  {
    type: 'function',
    function: {
      name: 'searchDocuments',
      parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
    },
  },
];

async function calls(
  text: string,
  more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {},
): Promise<unknown[]> {
  const choice = (await started.ask(text, { tools, ...more })).choices[0];
  const made = choice?.message.tool_calls ?? [];
  expect(choice?.finish_reason).toBe(made.length > 0 ? 'tool_calls' : 'stop');
  return made.map((call) => call.type === 'function' && [call.function.name, JSON.parse(call.function.arguments)]);
}

const weather = ['get_current_weather', { city: 'New York', days: 3 }];

it('calls the tools that the user speaks of, with arguments from what was said', async () => {
  expect(await calls('What is the weather in New York for the next 3 days?')).toEqual([weather]);
  expect(await calls('weather in New York for 3 days in celsius')).toEqual([
    ['get_current_weather', { city: 'New York', unit: 'celsius', days: 3 }],
  ]);
  expect(await calls('search the documents for "escrow"')).toEqual([['searchDocuments', { query: 'escrow' }]]);
  expect(await calls('hello')).toEqual([]);
});

it('heeds tool_choice and parallel_tool_calls', async () => {
  expect(await calls('hello', { tool_choice: 'required' })).toHaveLength(1);
  expect(await calls('hello', { tool_choice: { type: 'function', function: { name: 'searchDocuments' } } })).toEqual([
    ['searchDocuments', { query: 'hello' }],
  ]);
  expect(await calls('the weather', { tool_choice: 'none' })).toEqual([]);
  expect(await calls('search for the weather')).toHaveLength(2);
  expect(await calls('search for the weather', { parallel_tool_calls: false })).toHaveLength(1);
  await expect(calls('hello', { tool_choice: { type: 'function', function: { name: 'no_such' } } })).rejects.toThrow(
    'tool_choice',
  );
});

it('streams calls as deltas that the SDK puts together, then answers from the result', async () => {
  const question = { role: 'user' as const, content: 'weather in New York, 3 days' };
  const first = await started.client.chat.completions
    .stream({ model: 'demo/chat', messages: [question], tools })
    .finalChatCompletion();
  const [call] = first.choices[0]?.message.tool_calls ?? [];
  expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toEqual(weather[1]);
  const second = await started.ask('', {
    tools,
    messages: [question, first.choices[0]!.message, { role: 'tool', tool_call_id: call!.id, content: '21 degrees' }],
  });
  expect(second.choices[0]?.message.content).toBe('The tool answered: 21 degrees');
});

it('says what images it got, and counts them', async () => {
  const images = [
    `data:image/png;base64,${Buffer.alloc(4096).toString('base64')}`,
    'https://pictures.example/cat.JPG?size=1',
    'https://pictures.example/unknown',
  ];
  const content = [
    { type: 'text' as const, text: 'hello' },
    ...images.map((url) => ({ type: 'image_url' as const, image_url: { url } })),
  ];
  const reply = await started.ask('', { messages: [{ role: 'user', content }] });
  expect(reply.choices[0]?.message.content).toMatch(
    /^I got 3 images: a PNG of 4 KiB in the request, a JPEG at pictures\.example, one of a kind I do not know at pictures\.example\. .*demo model/,
  );
  expect(reply.usage?.prompt_tokens).toBe(3 + 4 + 1 + 3 * 85);
});

it('fills in what was said in the form of an example', async () => {
  const dice = { type: 'string', default: '1d6', examples: ['2d6+1', '2d6', 'd20'] };
  const rolling: OpenAI.ChatCompletionTool[] = [
    { type: 'function', function: { name: 'roll_dice', parameters: { type: 'object', properties: { dice } } } },
  ];
  const rolled = async (text: string) => (await calls(text, { tools: rolling })).map((call) => JSON.stringify(call));
  expect((await rolled('Roll 2d6'))[0]).toContain('2d6');
  expect((await rolled('Roll 3d8+2, please'))[0]).toContain('3d8+2');
  expect((await rolled('Roll the dice'))[0]).toContain('1d6');
});

it('paints another picture each time where no seed is named, also with -1', async () => {
  const paint = async (more: object) => {
    const response = await fetch(`${started.demo.url}/images/generations`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'A gate', size: '32x32', ...more }),
    });
    return ((await response.json()) as { data: { b64_json: string }[] }).data[0]!.b64_json;
  };
  for (const more of [{}, { seed: -1 }]) expect(await paint(more)).not.toBe(await paint(more));
  expect(await paint({ seed: 7 })).toBe(await paint({ seed: 7 }));
});
