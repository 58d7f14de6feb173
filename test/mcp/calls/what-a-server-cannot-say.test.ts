import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

let result = '';
let server: RawMcp;
let spine: Spine;
beforeAll(async () => {
  server = await startRawMcp(() => result);
  spine = await startSpine({ toml: toolToml({ name: 'says', url: server.url }) });
});
afterAll(async () => {
  await spine.stop();
  await server.close();
});

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
