import { beforeEach, expect, test } from 'vitest';
import { ofFile, spineOfFile } from '../support/of-file.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';
import { geminiAnswer, message, response } from './native/support/transcripts.ts';
import { startWireUpstream, type Reached } from './native/support/wire-upstream.ts';
import { completion, eventsOf, words } from './translated/support/transcript-upstream.ts';

// A provider that refuses a field which the client never sent gets the request once more without it, and later
// requests without it from the beginning. Each case has a model of its own, because what is learnt stays.

const CASES = 12;
const upstream = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => ({
  toml:
    UNHURRIED +
    Array.from({ length: CASES }, (_, index) =>
      modelBlock({
        name: `strict/m${index}`,
        provider: `Strict${index}`,
        url: upstream.url,
        maxOutputTokens: 500,
        pricing: 'web_search = 0.01',
        params: 'wires = ["responses", "messages", "gemini"]',
      }),
    ).join(''),
}));

let model = '';
let used = 0;
/** The names in a request of what the provider refuses, by its answer. */
let refuses: Readonly<Record<string, object>> = {};
beforeEach(() => {
  model = `strict/m${used++}`;
  refuses = {};
  upstream.reached.length = 0;
  upstream.answer = ({ path, body, text }) => {
    const refused = Object.keys(refuses).find((name) => text.includes(`"${name}"`));
    if (refused !== undefined) return { status: 400, text: JSON.stringify(refuses[refused]) };
    if (path.endsWith('/responses')) return { text: response() };
    if (path.endsWith('/messages')) return { text: message() };
    if (path.includes(':generateContent')) return { text: geminiAnswer() };
    const chunks = words('GOOD');
    if (body['stream'] !== true) return { text: JSON.stringify(completion({ content: 'GOOD' })) };
    return { text: eventsOf(body['stream_options'] === undefined ? chunks.slice(0, -1) : chunks) };
  };
});

const openai = (param: string) => ({
  error: { message: `Unknown parameter: '${param}'.`, type: 'invalid_request_error', param },
});
const unknown = (name: string) => ({ [name]: openai(name) });
const stream = (more: object = {}) => ({
  model,
  stream: true,
  max_tokens: 9,
  messages: [{ role: 'user', content: 'x' }],
  ...more,
});
const ask = async (body: object, path = '/chat/completions') => {
  const answer = await spine.post(path, body);
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
};
/** How many requests had a field, of those that arrived. */
const sent = (has: (body: Reached['body']) => unknown) => upstream.reached.map(({ body }) => has(body) !== undefined);
const flagged = () =>
  spine.logs.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ service }) => service === model);

test.each([
  ['text', { error: { message: 'Unrecognized request argument supplied: stream_options', param: null } }],
  [
    'a path',
    { detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] },
  ],
  ['quotes', { error: { message: "json: unknown field 'stream_options'" } }],
  ['its member', { message: 'stream_options.include_usage: extra fields not permitted' }],
])(
  'stream_options, refused in words with %s: the stream comes, free as one without usage, and the operator is told once',
  async (_, words) => {
    refuses = { stream_options: words };
    for (const body of [stream(), stream({ stream_options: { include_usage: true } }), stream()]) {
      const { status, text } = await ask(body);
      expect([status, text.includes('GOOD')]).toEqual([200, true]);
    }
    expect(sent((body) => body['stream_options'])).toEqual([true, false, false, false]);
    const lines = flagged();
    expect(lines.filter(({ msg }) => /refuses fields/.test(String(msg)))).toMatchObject([
      { level: 'warn', fields: ['stream_options.include_usage'], provider: model.replace('strict/m', 'Strict') },
    ]);
    expect(lines.filter(({ flags }) => JSON.stringify(flags) === '["usage_missing"]')).toHaveLength(3);
    const [call] = lines.filter(({ msg }) => msg === 'call');
    const record = await spine.generation(call!['generation_id'] as string);
    expect(record).toMatchObject({ cost_micro_usdc: 0, flags: ['usage_missing'] });
  },
);

test('an option of streams that the client set is its own, and words that a client can cause teach nothing', async () => {
  refuses = { include_obfuscation: openai('stream_options.include_obfuscation') };
  expect((await ask(stream({ stream_options: { include_obfuscation: false } }))).status).toBe(400);
  refuses = { oddity: { error: { message: 'Unknown parameter: oddity. Supported: model, stream, stream_options' } } };
  expect((await ask(stream({ oddity: 1 }))).status).toBe(400);
  // Some services write into an error what the model said, and answer another time.
  const said = { message: `Failed to call a function: ${'x'.repeat(100)} Unknown parameter: stream_options` };
  refuses = { stream_options: { error: said } };
  expect((await ask(stream())).status).toBe(200);
  refuses = {};
  expect((await ask(stream())).status).toBe(200);
  // The second and the third were asked once more.
  expect(sent((body) => body['stream_options'])).toEqual([true, true, false, true, false, true]);
});

test('options of the client that cannot be sent are named', async () => {
  refuses = unknown('stream_options');
  expect((await ask(stream())).status).toBe(200);
  const { status, headers } = await ask(stream({ stream_options: { include_obfuscation: false } }));
  expect([status, headers.get('x-tollgate-dropped')]).toEqual([200, 'stream_options']);
});

test('a cap that the client did not ask for', async () => {
  const chat = { model, messages: [{ role: 'user', content: 'x' }] };
  refuses = { max_tokens: { error: { message: 'max_tokens + prompt is too much for me' } } };
  expect((await ask(chat)).status).toBe(200);
  // These words may be about this prompt, so they are not learnt. A cap of the client is the client's.
  expect((await ask(chat)).status).toBe(200);
  expect(sent((body) => body['max_tokens'])).toEqual([true, false, true, false]);
  expect((await ask({ ...chat, max_tokens: 9 })).status).toBe(400);
});

test('the cap, the thinking and the limit of searches of the Responses API, each once', async () => {
  const body = { model, input: 'x', store: true, tools: [{ type: 'web_search' }] };
  refuses = {
    ...unknown('max_output_tokens'),
    ...unknown('max_tool_calls'),
    include: { error: { message: 'Encrypted content is not supported with this model.' } },
  };
  for (const turn of [1, 2]) expect([turn, (await ask(body, '/responses')).status]).toEqual([turn, 200]);
  expect(sent((one) => one['max_output_tokens'])).toEqual([true, false, false, false, false]);
  expect(sent((one) => one['max_tool_calls'])[4]).toBe(false);
  expect(sent((one) => one['include'])[4]).toBe(false);
  // No other consumer may find it.
  expect(upstream.reached.every((one) => one.body['store'] === false)).toBe(true);
  const mine = await ask({ ...body, max_tool_calls: 3 }, '/responses');
  expect([mine.status, mine.text.includes('max_tool_calls')]).toEqual([400, true]);
});

test('the limit of searches of the Messages API', async () => {
  const search = { type: 'web_search_20250305', name: 'web_search' };
  const body = { model, max_tokens: 50, messages: [{ role: 'user', content: 'x' }] };
  refuses = { max_uses: { type: 'error', error: { message: 'tools.0.max_uses: Extra inputs are not permitted' } } };
  for (const turn of [1, 2])
    expect([turn, (await ask({ ...body, tools: [search] }, '/messages')).status]).toEqual([turn, 200]);
  expect(upstream.reached.map(({ text }) => text.includes('max_uses'))).toEqual([true, false, false]);
  expect((await ask({ ...body, tools: [{ ...search, max_uses: 2 }] }, '/messages')).status).toBe(400);
});

test('the cap of the Gemini API', async () => {
  refuses = {
    maxOutputTokens: {
      error: {
        code: 400,
        message: `Invalid JSON payload received. Unknown name "maxOutputTokens" at 'generation_config': Cannot find field.`,
      },
    },
  };
  const url = `${spine.origin}/v1beta/models/${model}:generateContent`;
  for (const turn of [1, 2]) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'x-goog-api-key': spine.key, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] }),
    });
    expect([turn, answer.status]).toEqual([turn, 200]);
  }
  expect(sent((body) => body['generationConfig'])).toEqual([true, false, false]);
});
