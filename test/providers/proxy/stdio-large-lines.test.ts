import { expect, it } from 'vitest';
import { BOTH, callOf, jsonOf, stdioTool } from './stdio-tool.ts';

const tool = stdioTool({ shared: false });

const note = (data: unknown) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } });
/** The messages that the client gets for a call of the tool that writes these lines. */
async function events(...lines: readonly unknown[]): Promise<unknown[]> {
  await tool.start();
  const session = await tool.session();
  const line = lines.map((one) => JSON.stringify(one)).join('\n');
  const reply = await tool.post(callOf('line', { line }, 'a'), { ...session, accept: BOTH });
  const texts = reply.body.toString().trim().split('\n\n');
  return texts.map((text) => JSON.parse(text.replace('event: message\ndata: ', '')) as unknown);
}

it('small lines wait behind a large one, and all come in their order', async () => {
  const lines = [note('first'), note(['x'.repeat(200_000)]), note('small'), note(['y'.repeat(70_000)])];
  const answer = { jsonrpc: '2.0', id: 'a', result: { n: 1 } };
  expect(await events(...lines, answer)).toEqual([...lines, answer]);
});

it.each([
  ['too many keys', Array.from({ length: 20_001 }, () => ({ k: 1 })), 'has more than 20000 '],
  ['too many elements', Array(200_001).fill(1), 'has more than 200000 elements'],
  ['too deep a structure in a small line', JSON.parse('['.repeat(3_000) + ']'.repeat(3_000)), 'deeper than 256 levels'],
])('an answer with %s: its caller learns what is too much', async (_what, result, words) => {
  await tool.start();
  const session = { ...(await tool.session()), accept: 'application/json' };
  const line = JSON.stringify({ jsonrpc: '2.0', id: 'a', result: { result } });
  expect(jsonOf(await tool.post(callOf('line', { line }, 'a'), session))).toMatchObject({
    id: 'a',
    error: { code: -32000, message: expect.stringContaining(words) as unknown },
  });
  const after = await tool.post(callOf('echo', {}, 'b'), session);
  expect(jsonOf(after)).toMatchObject({ id: 'b', result: {} });
});

it('a batch of too many messages: the first 1,000 are read, and the caller of the last gets an error', async () => {
  await tool.start();
  const session = { ...(await tool.session()), accept: 'application/json' };
  const batch = [...Array.from({ length: 1_001 }, () => note('x')), { result: {}, jsonrpc: '2.0', id: 'a' }];
  const reply = await tool.post(callOf('line', { line: JSON.stringify(batch) }, 'a'), session);
  expect(jsonOf(reply)).toMatchObject({
    id: 'a',
    error: { code: -32000, message: expect.stringContaining('more than 1000 messages') as unknown },
  });
});
