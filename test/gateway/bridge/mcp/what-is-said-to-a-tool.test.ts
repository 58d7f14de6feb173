import { expect, test } from 'vitest';
import type { TargetRequest } from '#bridge';
import { startBridgeWorld } from './bridge-world.ts';
import { startTools, text } from './raw-tools.ts';

const STRING = { type: 'string' };
const TOOLS = {
  search: { properties: { query: STRING, limit: { type: 'integer' } }, required: ['query'] },
  echo: { properties: { said: STRING } },
  add: { properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
  count: { properties: { n: { type: 'integer' } }, required: ['n'] },
  now: {},
  proto: { properties: JSON.parse('{"__proto__":{"type":"string"}}') as object },
};

async function world() {
  const server = await startTools(TOOLS, () => text('done'));
  const { mcp, say, charged } = await startBridgeWorld({ tools: { files: { url: server.url } } });
  await mcp.toolsOf('files');
  const given = async (tool: string, ask: Partial<TargetRequest> | string) => {
    await say(`files/${tool}`, ask);
    return server.asked.at(-1)!.text;
  };
  return { given, say, server, charged };
}

const args = (written: string) => expect.stringContaining(`"arguments":${written}`);
const user = (...parts: TargetRequest['turns'][number]['parts']) => ({ turns: [{ role: 'user', parts }] }) as const;

test('arguments that the door has as an object go as they are', async () => {
  const { given } = await world();
  expect(await given('add', { arguments: { a: 1, b: 2 } })).toEqual(args('{"a":1,"b":2}'));
});

test('a text that is a JSON object is the arguments, by every character', async () => {
  const { given } = await world();
  expect(await given('add', '{ "a": 1.0, "b": 12345678901234567890 }')).toEqual(
    args('{ "a": 1.0, "b": 12345678901234567890 }'),
  );
  expect(await given('add', user({ kind: 'data', data: { a: 1, b: 2 } }))).toEqual(args('{"a":1,"b":2}'));
});

test('a text for a tool with one text to fill in is that text', async () => {
  const { given } = await world();
  expect(await given('search', 'cats {and} "dogs"')).toEqual(args('{"query":"cats {and} \\"dogs\\""}'));
  expect(await given('echo', '{ no json')).toEqual(args('{"said":"{ no json"}'));
  expect(await given('echo', user({ kind: 'text', text: 'a' }, { kind: 'text', text: 'b' }))).toEqual(
    args('{"said":"a\\nb"}'),
  );
  expect(await given('proto', 'x')).toEqual(args('{"__proto__":"x"}'));
});

test('one text under another name goes to the tool that has one text to fill in', async () => {
  const { given } = await world();
  expect(await given('search', { arguments: { patch: 'x' } })).toEqual(args('{"query":"x"}'));
  expect(await given('search', { arguments: { query: 'x' } })).toEqual(args('{"query":"x"}'));
  expect(await given('search', { arguments: { limit: '3' } })).toEqual(args('{"limit":"3"}'));
  expect(await given('search', { arguments: { patch: 'x', limit: 3 } })).toEqual(args('{"patch":"x","limit":3}'));
  expect(await given('add', { arguments: { patch: 'x' } })).toEqual(args('{"patch":"x"}'));
});

test('of what was said before, the last is what counts', async () => {
  const { given } = await world();
  const turns = [
    { role: 'user', parts: [{ kind: 'text', text: '{"a":1}' }] },
    { role: 'assistant', parts: [{ kind: 'text', text: 'and?' }] },
    { role: 'user', parts: [{ kind: 'text', text: 'birds' }] },
  ] as const;
  expect(await given('search', { turns })).toEqual(args('{"query":"birds"}'));
});

test('what cannot be arguments is refused with what the tool takes, and nothing is asked', async () => {
  const { say, server, charged } = await world();
  const refused = (tool: string, ask: Partial<TargetRequest> | string, how: object) =>
    expect(say(`files/${tool}`, ask)).rejects.toMatchObject(how);
  await refused('add', 'one and two', {
    code: 'unprocessable',
    message: 'files/add takes its arguments as a JSON object: {"a": number (required), "b": number (required)}',
  });
  await refused('count', '7', { code: 'unprocessable', message: expect.stringContaining('"n": integer (required)') });
  await refused('now', 'what time is it', { code: 'unprocessable', message: 'files/now takes no arguments: send {}' });
  await refused('search', '  ', {
    code: 'unprocessable',
    message: expect.stringContaining('"query": string (required), "limit": integer'),
  });
  const file = { kind: 'file', mediaType: 'image/png', name: null, url: null, bytes: '' } as const;
  await refused('search', user({ kind: 'text', text: 'what is this' }, file), {
    code: 'unprocessable',
    message: expect.stringContaining('does not accept files'),
  });
  await refused('add', `{"a":${'['.repeat(500)}${']'.repeat(500)}}`, { code: 'invalid_request' });
  expect(server.asked).toEqual([]);
  expect(await charged()).toBe(0n);
});

test('a schema of hundreds of properties is not shown whole', async () => {
  const properties = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`p${i}`.padEnd(100, '\u202e'), STRING]));
  const server = await startTools({ many: { properties } }, () => text('done'));
  const { say, mcp } = await startBridgeWorld({ tools: { wide: { url: server.url } } });
  await mcp.toolsOf('wide');
  const error = await say('wide/many', 'hello').catch((refused: Error) => refused);
  expect((error as Error).message).toMatch(/, and 280 more\}$/);
  expect((error as Error).message.length).toBeLessThan(3_000);
  expect((error as Error).message).not.toContain('\u202e');
});
