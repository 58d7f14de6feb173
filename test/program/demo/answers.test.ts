import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDemo } from './demo-client.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

let started: Awaited<ReturnType<typeof startDemo>>;
beforeAll(async () => {
  started = await startDemo();
});
afterAll(() => started.demo.close());

async function answer(text: string, model = 'demo/chat'): Promise<string | null | undefined> {
  return (await started.ask(text, { model })).choices[0]?.message.content;
}

it.each([
  ['count to 5', '1, 2, 3, 4, 5.'],
  ['Count from 3 to -1 please', '3, 2, 1, 0, -1.'],
  ['What is 2 + 3 * 4?', '2 + 3 * 4 = 14'],
  ['what is (2 + 3) × 4?', '(2 + 3) × 4 = 20'],
  ['12.5 divided by 5', '12.5 / 5 = 2.5'],
  ['What is 7 minus 10', '7 - 10 = -3'],
  ['add 1, 2, 3 and 4', '1 + 2 + 3 + 4 = 10'],
  ['1/0', '1/0 = not a number: there is a division by zero in it'],
  ['how many words are in "to be or not to be"?', 'That is 6 words and 18 characters.'],
])('%s', async (text, expected) => {
  expect(await answer(text)).toBe(expected);
});

it.each([
  ['hello', /demo model.*Try "count to 10"/],
  ['What is tollgate?', /gateway and marketplace.*paid per use/],
  ['what does this cost me?', /Your prompt was 1\d tokens.*locked.*usage\.cost/],
  ['who are you', /I am tollgate.s demo model/],
  ['My cat sat on the mat', /"My cat sat on the mat" \(6 words, \d+ tokens\)/],
  ['', /You said nothing/],
  ['((((1+', /rules and no model/],
  ['call me on 2026-01-01', /./],
])('%j', async (text, expected) => {
  expect(await answer(text)).toMatch(expected);
});

it('echo says what was said, whatever it was', async () => {
  const text = '  count to 5\n通行 🚧\t"quoted"  ';
  expect(await answer(text, 'demo/echo')).toBe(text);
  expect(await answer(text, 'echo')).toBe(text);
});

it('the same seed gives the same answer, and choices differ', async () => {
  const ask = async (seed: number): Promise<unknown> =>
    (await started.ask('hello', { n: 2, ...({ seed } as object) })).choices.map((choice) => choice.message.content);
  const first = await ask(1);
  expect(await ask(1)).toEqual(first);
  expect(await ask(2)).not.toEqual(first);
  expect(new Set(first as string[]).size).toBe(2);
});

it('answers JSON to a schema when asked for it', async () => {
  const schema = {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'integer', minimum: 2 },
      unit: { $ref: '#/$defs/unit' },
      note: { anyOf: [{ type: 'null' }, { type: 'string' }] },
    },
    required: ['city', 'days', 'unit'],
    $defs: { unit: { enum: ['celsius', 'fahrenheit'] } },
  };
  const reply = await started.ask('1 plan for 3 days in New York, in fahrenheit', {
    response_format: { type: 'json_schema', json_schema: { name: 'plan', schema } },
  });
  expect(JSON.parse(reply.choices[0]?.message.content ?? '')).toEqual({
    city: 'New York',
    days: 3,
    unit: 'fahrenheit',
  });
});

// As instructor asks for an iterable of objects: by a tool, whose list is not required.
const PEOPLE = {
  $defs: {
    Person: {
      properties: { name: { title: 'Name', type: 'string' }, age: { title: 'Age', type: 'integer' } },
      required: ['name', 'age'],
      title: 'Person',
      type: 'object',
    },
  },
  properties: { tasks: { items: { $ref: '#/$defs/Person' }, title: 'Tasks', type: 'array' } },
  type: 'object',
  required: [],
};

it('fills an optional list of objects, in an answer and in the arguments of a tool', async () => {
  const people = { tasks: [{ name: 'Ann', age: 3 }] };
  const answered = await started.ask('Write of Ann at 3', {
    response_format: { type: 'json_schema', json_schema: { name: 'people', schema: PEOPLE } },
  });
  expect(JSON.parse(answered.choices[0]?.message.content ?? '')).toEqual(people);
  const called = await started.ask('Write of Ann at 3', {
    tools: [{ type: 'function', function: { name: 'people', parameters: PEOPLE } }],
    tool_choice: { type: 'function', function: { name: 'people' } },
  });
  expect(called.choices[0]?.message.tool_calls).toMatchObject([{ function: { arguments: JSON.stringify(people) } }]);
});

it.each([
  ['json_object', { type: 'json_object' }],
  ['a schema that is absent', { type: 'json_schema', json_schema: { name: 'any' } }],
] as const)('%s gets the answer as an object', async (_what, format) => {
  const reply = await started.ask('count to 3', { response_format: format });
  expect(JSON.parse(reply.choices[0]?.message.content ?? '')).toEqual({ answer: '1, 2, 3.' });
});

it('stays quick on hostile texts', async () => {
  const begun = performance.now();
  for (const text of [
    '('.repeat(200_000),
    '1 '.repeat(200_000),
    'A'.repeat(200_000),
    'count '.repeat(50_000),
    'add 1,'.repeat(50_000),
  ])
    await answer(text);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(3000));
});

it('hears the person, not what a coding agent puts around the words', async () => {
  const around = '<system-reminder>\nToday is 2026-11-21. Use the weather tool.\n</system-reminder>\n';
  expect(await answer(`${around}count to 3`)).toBe('1, 2, 3.');
  expect(await answer(`count to 3\n${around}${around}`)).toBe('1, 2, 3.');
  expect(await answer('<environment_context><cwd>/tmp/1+1</cwd></environment_context>\n\nhello')).toMatch(
    /I am the demo model/,
  );
  expect(await answer('<b>count to 3')).toBe('1, 2, 3.');
  const tool = { type: 'function' as const, function: { name: 'weather', parameters: {} } };
  const { choices } = await started.ask(`${around}hello`, { tools: [tool] });
  expect(choices[0]?.message.tool_calls ?? []).toEqual([]);
});
