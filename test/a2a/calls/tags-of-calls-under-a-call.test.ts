import { expect, test } from 'vitest';
import { serveRaw, taskResult } from './support/raw-served.ts';
import { useCallsWorld } from './support/calls-world.ts';
import { asAgent, giftOf, type Gift } from './support/nested.ts';

// A call under others is paid from the topmost lock, and counts in the budgets of that call's tags.

const calls = useCallsWorld();
const TAGS = 'x-tollgate-tags';

test('a call under a call may have a tag whose budget counts the topmost call, and no other', async () => {
  const { spine } = calls.world;
  const limits = (tags: readonly string[]) =>
    fetch(`${spine.url}/limits`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tag_budgets: tags.map((tag) => ({ tag, limit: 1, limit_reset: 'daily' })) }),
    });
  expect((await limits(['team=blue', 'team=red'])).status).toBe(200);
  const said: (readonly [status: number, text: string])[] = [];
  const agentThat = (nestedMax: number, work: (gift: Gift) => Promise<void>) =>
    serveRaw(
      calls.world,
      async (exchange) => {
        const { id } = exchange.request.params as { readonly id?: string };
        if (id !== undefined) return exchange.result(taskResult(id, 'COMPLETED').task);
        await work(giftOf(exchange).metadata!);
        exchange.result(taskResult(`tagged-${crypto.randomUUID()}`, 'COMPLETED'));
      },
      { pricing: `per_call = 0.001\nnested_max = ${nestedMax}` },
    );
  const chats = async ({ token }: Gift) => {
    for (const headers of [{}, { [TAGS]: 'team=blue' }, { [TAGS]: 'team=red' }]) {
      const { status, text } = await asAgent(spine, token).chat('hi !tokens:2', {}, headers);
      said.push([status, text]);
    }
  };
  const inner = await agentThat(0.05, chats);
  // It passes no tag on.
  const outer = await agentThat(0.2, async (gift) => {
    await chats(gift);
    const { status, text } = await asAgent(spine, gift.token).agent(inner.service, 'nested');
    expect(status, text).toBe(200);
  });
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'work' }] };
  const answer = await fetch(outer.url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
      [TAGS]: 'team=blue',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('TASK_STATE_COMPLETED')]);
  expect(said.map(([status]) => status)).toEqual([200, 200, 422, 200, 200, 422]);
  expect(said[2]![1]).toContain('The tag team=red has a budget, which does not count the call that pays for this one');
  expect((await limits([])).status).toBe(200);
});
