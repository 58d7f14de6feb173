import { expect, onTestFinished, test } from 'vitest';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { startTunnelSpine, until } from '../../support/tunnel-spine.ts';
import { callTool } from '../calls/modern-post.ts';
import { callIn, endSession, listenIn, openSession } from './clients.ts';
import { commandTool } from './offered-tools.ts';

// The connection between a proxy and its gateway is cut; both live on, and so do the processes of the tool. The
// proxy dials in again.

test('what ran is not charged, sessions go on with the processes that they had, and the proxy keeps nothing of what was cut', async () => {
  const { spine, dialIn } = await startTunnelSpine();
  const line = await startFaultProxy({ port: Number(new URL(spine.origin).port) });
  onTestFinished(() => line.stop());
  const command = commandTool('tunnel/command');
  const proxy = await dialIn({
    router: `http://127.0.0.1:${line.port}`,
    services: command.toml,
    limits: { toolStop: { termMs: 100, killMs: 500 } },
  });
  const session = await openSession(spine, 'tunnel/command');
  const idle = await openSession(spine, 'tunnel/command');
  for (const one of [session, idle])
    expect((await callIn(one, 'count', {}, 'first')).message.result).toMatchObject({ content: [{ text: '1' }] });
  const held = await callTool(spine, 'tunnel/command', 'elicit');
  expect(held.message.result.resultType).toBe('input_required');
  const stream = await listenIn(session);
  await stream.has(':');
  const before = await spine.balance();
  const calls = [callIn(session, 'never'), callTool(spine, 'tunnel/command', 'never')] as const;
  await until(() => command.got('"never"').length === 2);
  const processes = command.running();

  line.reset();
  const [old, young] = await Promise.all(calls);
  expect([old.status, old.message.error?.code]).toEqual([200, expect.any(Number)]);
  expect([young.status, young.message.error?.code]).toEqual([502, expect.any(Number)]);
  expect((await stream.over).how).toBe('whole');
  await proxy.logged('ready: calls can come', 2);

  for (const one of [session, idle])
    expect((await callIn(one, 'count', {}, 'second')).message.result).toMatchObject({ content: [{ text: '2' }] });
  const again = await listenIn(session);
  await again.has(':');
  again.leave();
  await again.over;
  const { inputRequests, requestState } = held.message.result;
  const inputResponses = { [Object.keys(inputRequests!)[0]!]: { action: 'accept', content: {} } };
  const late = await callTool(spine, 'tunnel/command', 'elicit', {}, { params: { requestState, inputResponses } });
  expect(late.message.error?.code).toEqual(expect.any(Number));
  expect((await callTool(spine, 'tunnel/command', 'count')).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
  // Three calls were answered; the lock of the held one was given back.
  expect((await spine.balance()).available - before.available).toBe(1_000n - 3_000n);

  // No process more than before, once the gateway has asked the tool for its lists again, for which it opens a session
  // of its own. The processes of ended sessions go.
  await until(() => command.running().every((pid) => processes.includes(pid)));
  expect([await endSession(session), await endSession(idle)]).toEqual([204, 204]);
  await until(() => command.running().length <= processes.length - 2);
  expect(await spine.app.metrics.text()).toMatch(/^tollgate_mcp_held_calls 0$/m);
});
