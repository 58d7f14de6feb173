import { afterEach, expect, test } from 'vitest';
import { tokenText } from '../support/provider/tokens.ts';
import { ask, events, MODEL, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Whatever the provider's bytes look like, the client reads the same clean stream: all of the text, one end, one usage.

const spine = spineOfFile(() => ({ toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 0` }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly created: number;
  readonly choices: {
    index: number;
    delta: { role?: string; content?: string; tool_calls?: ToolDelta[] };
    finish_reason: string | null;
  }[];
  readonly usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number; cost: number };
}
interface ToolDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

async function stream(
  content: string,
  more: object = {},
): Promise<{ chunks: Chunk[]; text: string; response: Response; raw: string }> {
  const response = await spine.post('/chat/completions', ask(content, { stream: true, max_tokens: 200, ...more }));
  expect(response.status).toBe(200);
  const raw = await response.text();
  // One form for the client, whatever came: `data: ` lines, LF, a blank line after each.
  expect(raw).not.toMatch(/\r|^\u{FEFF}/u);
  const all = events(raw);
  expect(raw.split('\n\n').filter((event) => event !== '' && !event.startsWith(': ')).length).toBe(all.length);
  expect(all.at(-1)).toBe('[DONE]');
  expect(all.filter((event) => event === '[DONE]')).toHaveLength(1);
  const chunks = all.slice(0, -1) as Chunk[];
  return { chunks, text: chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), response, raw };
}

function expectWhole({ chunks, text, response }: Awaited<ReturnType<typeof stream>>, tokens: number): void {
  const call = spine.provider.log.at(-1)!;
  expect(text).toBe(Array.from({ length: tokens }, (_, index) => tokenText(index)).join(''));
  expect(call.completionTokens).toBe(tokens);
  expect(call.textBytes).toBe(Buffer.byteLength(text));
  for (const chunk of chunks)
    expect(chunk).toMatchObject({
      id: response.headers.get('x-generation-id'),
      object: 'chat.completion.chunk',
      model: MODEL,
    });
  expect(new Set(chunks.map(({ created }) => created)).size).toBe(1);
  expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant');
  // finish_reason and usage come once, in the last chunk, together.
  const ends = chunks.filter(({ choices }) => choices.some(({ finish_reason }) => finish_reason !== null));
  expect(ends).toEqual([chunks.at(-1)]);
  expect(chunks.filter((chunk) => 'usage' in chunk)).toEqual([chunks.at(-1)]);
  const paid = call.promptTokens + 2 * tokens;
  expect(chunks.at(-1)!.usage).toMatchObject({
    prompt_tokens: call.promptTokens,
    completion_tokens: tokens,
    total_tokens: call.promptTokens + tokens,
    cost: paid / 1e6,
  });
}

const FORMS = [
  '',
  '!eol:crlf',
  '!eol:cr',
  '!bom',
  '!comments',
  '!no-space',
  '!multiline',
  '!eol:crlf !bom !comments !multiline !no-space',
  '!usage-place:finish',
  '!usage:twice',
  '!usage:every',
  '!usage:no-total',
  '!finish:beside',
];

test.each(FORMS)('in the form %s', async (form) => {
  expectWhole(await stream(`hello !tokens:40 ${form}`), 40);
});

test.each(FORMS)('in the form %s, split anywhere', async (form) => {
  for (const seed of [1, 7, 23]) expectWhole(await stream(`hello !tokens:40 !split:${seed} ${form}`), 40);
});

test.each(['', '!eol:crlf !bom', '!eol:cr !comments', '!multiline'])('in the form %s, byte by byte', async (form) => {
  expectWhole(await stream(`hello !tokens:12 !dribble ${form}`), 12);
});

test('without [DONE] from the provider, the client still gets it', async () => {
  expectWhole(await stream('hello !tokens:5 !no-done'), 5);
});

test('of nothing but an end', async () => {
  const { chunks } = await stream('hello !tokens:0');
  expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('stop');
  expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens: 0 });
});

test('cut by max_tokens: finish_reason length', async () => {
  const { chunks } = await stream('hello !tokens:40', { max_tokens: 7 });
  expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('length');
  expect(chunks.at(-1)!.usage!.completion_tokens).toBe(7);
});

test('usage that is claimed after the end is not waited for', async () => {
  const before = await spine.balance();
  const { chunks } = await stream('hello !tokens:5 !usage:after-done');
  expect(chunks.filter((chunk) => 'usage' in chunk)).toHaveLength(1);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test('several choices', async () => {
  const { chunks } = await stream('hello !tokens:6 !split:3', { n: 3 });
  for (const index of [0, 1, 2]) {
    const own = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
    expect(own.map(({ delta }) => delta.content ?? '').join('')).toBe(
      Array.from({ length: 6 }, (_, at) => tokenText(at)).join(''),
    );
    expect(own.filter(({ finish_reason }) => finish_reason === 'stop')).toHaveLength(1);
  }
  expect(chunks.filter((chunk) => 'usage' in chunk)).toEqual([chunks.at(-1)]);
  expect(chunks.at(-1)!.usage!.completion_tokens).toBe(18);
});

test.each(['', '!tools:no-index', '!tools:repeat-id', '!tools:no-index !split:5 !eol:crlf'])(
  'tool calls, %s: index from 0, id and name once, arguments whole',
  async (form) => {
    const tools = ['alpha', 'beta'].map((name) => ({
      type: 'function',
      function: { name, parameters: { type: 'object' } },
    }));
    const { chunks } = await stream(`call alpha and beta ${form}`, { tools });
    const calls = new Map<number, { ids: string[]; names: string[]; text: string }>();
    for (const { choices } of chunks) {
      for (const delta of choices[0]?.delta.tool_calls ?? []) {
        const call = calls.get(delta.index) ?? { ids: [], names: [], text: '' };
        if (delta.id !== undefined) call.ids.push(delta.id);
        if (delta.function.name !== undefined) call.names.push(delta.function.name);
        call.text += delta.function.arguments;
        calls.set(delta.index, call);
      }
    }
    expect([...calls.keys()]).toEqual([0, 1]);
    expect([...calls.values()]).toEqual(
      ['alpha', 'beta'].map((name, index) => ({
        ids: [`call_${index}`],
        names: [name],
        text: '{"city":"Zürich","days":3}',
      })),
    );
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('tool_calls');
  },
);

test('an answer that is not streamed is whole as well, however it came', async () => {
  for (const form of ['', '!split:9', '!dribble', '!bom', '!finish:beside']) {
    const response = await spine.post('/chat/completions', ask(`hello !tokens:12 ${form}`));
    const body = (await response.json()) as {
      choices: { message: { content: string }; finish_reason: string }[];
      usage: { completion_tokens: number };
    };
    expect(body.choices[0]).toMatchObject({
      message: { content: Array.from({ length: 12 }, (_, at) => tokenText(at)).join('') },
      finish_reason: 'stop',
    });
    expect(body.usage.completion_tokens).toBe(12);
  }
});

test('a line without an end is given up at 1 MiB, and what came before it is paid', async () => {
  const before = await spine.balance();
  const response = await spine.post('/chat/completions', ask('hello !tokens:5 !endless:3000000', { stream: true }));
  const last = events(await response.text()).at(-1);
  expect(last).toMatchObject({ error: { type: 'reply_cut' }, choices: [{ finish_reason: 'length' }] });
  await spine.quiet();
  const after = await spine.balance();
  expect(after.locked).toBe(before.locked);
  expect(after.available).toBeLessThan(before.available);
});

test('model text that looks like events is text', async () => {
  // The eleventh word is "data: no ", the tenth ends a line.
  const { text } = await stream('hello !tokens:24');
  expect(text).toContain('counted\n');
  expect(text).toContain('data: no ');
});
