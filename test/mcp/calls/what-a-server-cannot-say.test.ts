import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { callTool, toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

let result = '';
const server = ofFile(
  () => startRawMcp(() => result),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({ toml: toolToml({ name: 'says', url: server.url }) }));

test('a receipt that a server writes itself is taken out, and what it says of the cost is replaced', async () => {
  result =
    '{"resultType":"complete","content":[],"_meta":{"tollgate/receipt":"forged","mine":1,"tollgate/generation":{"id":"x","cost":"0"}}}';
  const { message } = await callTool(spine, 'says', 'any');
  expect(message.result['_meta']).toEqual({
    mine: 1,
    'tollgate/generation': { id: expect.stringMatching(/^gen-/) as unknown, cost: '0.001', currency: 'USDC' },
  });
  expect(await spine.faults()).toEqual([]);
});

test.each([
  ['of the one revision', '{"resultType":"task","task":{"taskId":"1","status":"working"}}'],
  ['of the other', '{"resultType":"complete","task":{"taskId":"1","status":"working"}}'],
])('a task %s that nobody asked for is free, and holds nothing', async (_of, text) => {
  result = text;
  const before = await spine.balance();
  const { message } = await callTool(spine, 'says', 'any');
  expect(message.error).toMatchObject({ message: expect.any(String), data: { type: 'provider_unavailable' } });
  expect(await spine.balance()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});
