import { expect, test } from 'vitest';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { callTool } from '../calls/modern-post.ts';
import { callIn, openSession } from './clients.ts';
import { commandTool } from './offered-tools.ts';

// A provided program writes an answer that the proxy cannot pass on.

const TWICE = { line: '{"jsonrpc":"2.0","result":{},"result":{}}' };

test.each([
  ['large', { order: 'result version id' }, /longer than 4194304 bytes/],
  ['line', TWICE, /duplicate key/],
])('its client hears so at once and pays nothing: %s', async (tool, args, words) => {
  const { spine, dialIn } = await startTunnelSpine();
  await dialIn({ services: commandTool('tunnel/command').toml, limits: { toolStop: { termMs: 100, killMs: 500 } } });
  const session = await openSession(spine, 'tunnel/command');
  const before = await spine.balance();
  const replies = [await callTool(spine, 'tunnel/command', tool, args), await callIn(session, tool, args)];
  for (const { message } of replies)
    expect(message.error).toMatchObject({ code: -32_000, message: expect.stringMatching(words) as unknown });
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});
