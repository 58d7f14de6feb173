import { onTestFinished, expect, test } from 'vitest';
import { taskResult } from '../../a2a/calls/support/raw-served.ts';
import { createTalk } from '../../a2a/contract/client-calls.ts';
import { callTool, toolToml } from '../../mcp/calls/modern-post.ts';
import { makePlace } from '../../program/cli/tollgate.ts';
import { agentBlock, startCardedAgent } from '../../support/a2a-agent/index.ts';
import { pauses } from '../../support/pauses.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';

// A tool that answers with `isError`, and an agent whose task fails, have failed in every view: the lists of calls, the
// record, the sums of usage, and what their provider sees.

interface OwnCall {
  readonly id: string;
  readonly failed: boolean;
  readonly error_code: string | null;
  readonly earned_micro_usdc: number;
}

test('a call that its provider answers with a failure has failed in every view', async () => {
  const server = await startRawMcp(({ params }) =>
    JSON.stringify({ resultType: 'complete', content: [], ...(params['name'] === 'fails' && { isError: true }) }),
  );
  onTestFinished(() => server.close());
  const agent = await startCardedAgent((exchange) => exchange.result(taskResult('task', 'FAILED')));
  onTestFinished(() => agent.close());
  const { spine, dialIn, ownPage } = await startTunnelSpine(
    `[analytics]\nevery_ms = 50\n${toolToml({ name: 'own/tools', url: server.url })}${agentBlock({ name: 'own/agent', endpoint: agent.url })}`,
  );
  const { wallet } = await dialIn({ services: toolToml({ name: 'far/tools', url: server.url, provider: 'Far' }) });
  const place = await makePlace();
  onTestFinished(() => place.clear());
  const run = async (...args: readonly string[]) => {
    const { code, output, stdout } = await place.run([...args, '--url', spine.origin], {
      TOLLGATE_ADMIN_KEY: spine.adminKey,
    });
    expect(code, output).toBe(0);
    return stdout;
  };

  for (const name of ['own/tools', 'far/tools'])
    for (const tool of ['works', 'fails']) await callTool(spine, name, tool);
  const talk = createTalk(
    { url: `${spine.origin}/a2a/own/agent`, headers: { authorization: `Bearer ${spine.key}` } },
    '1.0',
    'JSONRPC',
  );
  await talk.sent('do it');
  await spine.quiet();

  const { account } = spine;
  const calls = await run('calls', account);
  for (const name of ['own/tools', 'far/tools']) {
    expect(calls).toMatch(new RegExp(`${name} works .* 200 complete`));
    expect(calls).toMatch(new RegExp(`${name} fails .* 0 +200 failed +tool_error$`, 'm'));
  }
  expect(calls).toMatch(/own\/agent .* 0 +200 failed +task_failed$/m);
  expect(calls).not.toContain('free');
  const ids = (await run('calls', account, '--failed')).match(/gen-\w+/g)!;
  expect(ids).toHaveLength(3);
  for (const id of ids) {
    const shown = await run('call', id);
    expect(shown).toMatch(/state +settled, free, failed\nfinish +(?:isError|failed)$/m);
    expect(shown).toMatch(/status +200 (?:tool_error|task_failed)$/m);
  }

  let usage = '';
  for (const pause of pauses()) {
    usage = await run('usage', account, '--group-by', 'model');
    if (/own\/agent +0 +1 /.test(usage)) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  for (const name of ['own/tools', 'far/tools']) expect(usage).toMatch(new RegExp(`${name} +1 +1 `));

  const { data } = await ownPage<{ readonly data: readonly OwnCall[] }>('/calls', wallet);
  expect(data.map(({ failed, error_code: code }) => [failed, code])).toEqual([
    [true, 'tool_error'],
    [false, null],
  ]);
  expect(data[0]!.earned_micro_usdc).toBe(0);
});
