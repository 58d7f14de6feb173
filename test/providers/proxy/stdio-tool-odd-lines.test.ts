import { expect, it } from 'vitest';
import { readableElements } from '../../../src/foundation/wire/json/raw-json.ts';
import { callOf, jsonOf, stdioTool } from './stdio-tool.ts';

const tool = stdioTool({ shared: true });
/** The process writes 5 MB in its place. */
const LARGE = '<large>';
const TOO_LONG = { code: -32000, message: expect.stringContaining('longer than 4194304 bytes') as unknown };

/** Calls that wait, and the ids that the process knows them by. */
async function waiting(...names: readonly string[]) {
  // The process writes its journal once it runs.
  await tool.post(callOf('echo'));
  const before = tool.got('tools/call').length;
  const replies = [];
  for (const [index, name] of names.entries()) {
    replies.push(tool.post(callOf('never', {}, name)));
    await expect.poll(() => tool.got('tools/call').length).toBe(before + index + 1);
  }
  return {
    replies,
    ids: tool
      .got('tools/call')
      .slice(before)
      .map(({ id }) => Number(id)),
  };
}

it('a batch of more than 4 MiB: its complete messages are read, and the clients of the others get an error at once', async () => {
  await tool.start();
  const { replies, ids } = await waiting('a', 'b', 'c');
  const [a, b, c] = ids;
  const line = `[{"jsonrpc":"2.0","id":${a},"result":{"n":1}},{"jsonrpc":"2.0","id":${b},"result":{"t":"${LARGE}"}},{"result":{},"jsonrpc":"2.0","id":${c}}]`;
  tool.post(callOf('line', { line }, 'writer')).catch(() => {});
  const [one, two, three] = (await Promise.all(replies)).map(jsonOf);
  expect(one).toEqual({ jsonrpc: '2.0', id: 'a', result: { n: 1 } });
  expect(two).toMatchObject({ id: 'b', error: TOO_LONG });
  expect(three).toMatchObject({ id: 'c', error: TOO_LONG });
});

it('a batch whose large response has its id last', async () => {
  await tool.start();
  const { replies, ids } = await waiting('a');
  const line = `[{"result":{"t":"${LARGE}"},"jsonrpc":"2.0","id":${ids[0]}}]`;
  tool.post(callOf('line', { line }, 'writer')).catch(() => {});
  expect(jsonOf(await replies[0]!)).toMatchObject({ id: 'a', error: TOO_LONG });
});

it('a large array that is no batch answers nothing', async () => {
  await tool.start();
  const { replies, ids } = await waiting('a');
  const line = `[{"name":"x","text":"${LARGE}"},{"name":"y","id":${ids[0]}}]\n{"jsonrpc":"2.0","id":${ids[0]},"result":{"n":1}}`;
  tool.post(callOf('line', { line }, 'writer')).catch(() => {});
  expect(jsonOf(await replies[0]!)).toEqual({ jsonrpc: '2.0', id: 'a', result: { n: 1 } });
});

it('a parse error without an id is the answer to the only open request', async () => {
  await tool.start();
  const line = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}';
  expect(jsonOf(await tool.post(callOf('line', { line }, 'a')))).toEqual({
    jsonrpc: '2.0',
    id: 'a',
    error: { code: -32700, message: 'Parse error' },
  });
});

it('another error without an id answers nothing: it may be about a notification', async () => {
  await tool.start([], {}, { shared: false });
  const session = { ...(await tool.session()), accept: 'application/json' };
  const lines = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}'];
  lines.push('{"jsonrpc":"2.0","id":"a","result":{"n":1}}');
  expect(jsonOf(await tool.post(callOf('line', { line: lines.join('\n') }, 'a'), session))).toMatchObject({
    id: 'a',
    result: { n: 1 },
  });
});

it('a notification whose id is null is passed on without it', async () => {
  await tool.start([], {}, { shared: false });
  const session = await tool.session();
  const note = '{"jsonrpc":"2.0","id":null,"method":"notifications/message","params":{"level":"info","data":"x"}}';
  const reply = await tool.post(
    callOf('line', { line: `${note}\n{"jsonrpc":"2.0","id":"a","result":{}}` }, 'a'),
    session,
  );
  const events = reply.body.toString().trim().split('\n\n');
  expect(events.map((event) => JSON.parse(event.replace('event: message\ndata: ', '')) as unknown)).toEqual([
    { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } },
    { jsonrpc: '2.0', id: 'a', result: {} },
  ]);
});

it.each([
  ['[{"a":1}, {"b":[2]}]', ['{"a":1}', '{"b":[2]}']],
  ['[{"a":1},{"b":"cut o', ['{"a":1}', '{"b":"cut o']],
  ['[{"a":1},', ['{"a":1}', '']],
  ['{"a":1}', []],
  ['[ ]', []],
])('the elements of %s', (text, elements) => {
  expect(readableElements(text)).toEqual(elements);
});
