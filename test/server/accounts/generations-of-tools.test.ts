import { onTestFinished, expect, it } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from '../../mcp/calls/modern-post.ts';

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s"}';
const DONE = '{"resultType":"complete","content":[]}';

it('each round of a tool call has a record: what it waits for, what went on with it, and what was charged', async () => {
  const server = await startRawMcp(({ params }) => (params['requestState'] === undefined ? ASKS : DONE));
  onTestFinished(() => server.close());
  const spine = await startSpine({ toml: toolToml({ name: 'asks', url: server.url }) });
  onTestFinished(() => spine.stop());

  const first = await callTool(spine, 'asks', 'ask');
  const firstId = first.headers.get('x-generation-id');
  expect(await spine.generation(firstId)).toMatchObject({
    state: 'held',
    outcome: null,
    primitive: 'tool',
    model: 'asks',
    tool: 'ask',
    continues: null,
    total_cost: 0,
    entries: [{ type: 'lock', amount_micro_usdc: 1_000 }],
    resolved_at: null,
  });

  const answers = { inputResponses: { who: { action: 'decline' } }, requestState: first.message.result.requestState };
  const second = await callTool(spine, 'asks', 'ask', {}, { params: answers });
  expect(await spine.generation(second.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    outcome: 'complete',
    tool: 'ask',
    continues: firstId,
    usage_details: { call: 1 },
    cost_micro_usdc: 1_000,
  });
  expect(await spine.generation(firstId)).toMatchObject({
    state: 'released',
    outcome: 'continued',
    tool: 'ask',
    cost_micro_usdc: 0,
    entries: [{ type: 'lock' }, { type: 'refund', amount_micro_usdc: 1_000 }],
  });
  expect(await spine.faults()).toEqual([]);
});
