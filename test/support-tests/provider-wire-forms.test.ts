import { afterAll, beforeAll, expect, it } from 'vitest';
import { startProvider } from '../support/provider.ts';
import type { TestProvider } from '../support/provider.ts';
import { chatBody, postRaw, readEvents } from './raw-client.ts';

let provider: TestProvider;
let url: string;
beforeAll(async () => {
  provider = await startProvider();
  url = `${provider.url}/chat/completions`;
});
afterAll(() => provider.stop());

function payload(body: Buffer): unknown[] {
  // The commands are part of the prompt, so the ids and the counts of the prompt differ.
  return readEvents(body).map((event) =>
    event === '[DONE]' ? event : { ...(JSON.parse(event) as object), id: '', usage: null },
  );
}

it.each([
  '!eol:crlf',
  '!eol:cr',
  '!bom',
  '!comments',
  '!no-space',
  '!multiline',
  '!split:7',
  '!dribble',
  '!bom !eol:crlf !comments !no-space !multiline !split:3',
])('%s says the same in other bytes', async (commands) => {
  const [plain, other] = [await postRaw(url, chatBody('')), await postRaw(url, chatBody(commands))];
  expect(payload(other.body)).toEqual(payload(plain.body));
  expect(other.body.equals(plain.body)).toBe(false);
});

it('splits at seeded places, also inside characters', async () => {
  const one = await postRaw(url, chatBody('!split:7 !tokens:100'));
  const again = await postRaw(url, chatBody('!split:7 !tokens:100'));
  expect(again.chunks).toEqual(one.chunks);
  expect(Math.max(...one.chunks)).toBeLessThanOrEqual(48);
  let offset = 0;
  const inside = one.chunks.filter((size) => {
    offset += size;
    // A continuation byte at the start of a piece.
    return ((one.body[offset] ?? 0) & 0xc0) === 0x80;
  });
  expect(inside.length).toBeGreaterThan(0);
});

it('has a line without an end', async () => {
  const reply = await postRaw(url, chatBody('!endless:100000'));
  expect(reply.body.length - reply.body.lastIndexOf('\n') - 1).toBe(100_000);
});

it.each([
  [
    '!finish:beside',
    (last: Record<string, unknown>) => expect(last).toMatchObject({ finish_reason: 'stop', choices: [{ delta: {} }] }),
  ],
  ['!finish:missing', (last: Record<string, unknown>) => expect(JSON.stringify(last)).not.toContain('finish_reason')],
  [
    '!finish:error',
    (last: Record<string, unknown>) => expect(last).toMatchObject({ choices: [{ finish_reason: 'error' }] }),
  ],
])('%s', async (commands, check) => {
  const events = readEvents((await postRaw(url, chatBody(commands))).body);
  check(JSON.parse(events.at(-3) ?? '') as Record<string, unknown>);
});

it('breaks off with an error event, or without [DONE]', async () => {
  const broken = readEvents((await postRaw(url, chatBody('!error-at:3'))).body);
  expect(broken).toHaveLength(5);
  expect(JSON.parse(broken.at(-1) ?? '')).toMatchObject({ error: { code: 500 } });
  const undone = await postRaw(url, chatBody('!no-done'));
  expect(undone).toMatchObject({ complete: true });
  expect(undone.body.includes('[DONE]')).toBe(false);
});

it.each([
  ['!tools:no-index', 0, 2],
  ['!tools:repeat-id', 10, 10],
  ['!tools:right', 10, 2],
])('%s: deltas with an index, deltas with an id', async (commands, indexes, ids) => {
  const tools = ['one_tool', 'two_tool'].map((name) => ({ type: 'function', function: { name } }));
  const events = readEvents((await postRaw(url, chatBody(`one_tool two_tool ${commands}`, { tools }))).body);
  const deltas = events.filter((event) => event.includes('"tool_calls":['));
  expect(deltas).toHaveLength(10);
  expect(deltas.filter((event) => /"tool_calls":\[\{"index":/.test(event))).toHaveLength(indexes);
  expect(deltas.filter((event) => event.includes('"id":"call_'))).toHaveLength(ids);
});

it('refuses a command that it does not know', async () => {
  expect((await postRaw(url, chatBody('!cutt:5'))).head).toContain('500');
});
