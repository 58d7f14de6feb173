import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import type { CommandTarget } from '../../../src/server/config/service.ts';
import { modelAt, runProxy, toolOfScript, type RunningProxy } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { startTunnelRouter, type TunnelRouter } from '../../support/tunnel-router.ts';
import { callOf, INITIALIZE, jsonOf } from './stdio-tool.ts';

let provider: TestProvider;
let router: TunnelRouter;
let running: RunningProxy;
afterEach(async () => {
  running.proxy.kill();
  await Promise.all([router.stop(), provider.stop()]);
});

const FILE = fileURLToPath(import.meta.url);

it.each<[string, Partial<CommandTarget>, string]>([
  ['a program below a file', { command: `${FILE}/program` }, 'ENOTDIR'],
  ['a directory that is a file', { cwd: FILE }, 'ENOTDIR'],
  ['an argument that is too long', { args: ['x'.repeat(300_000)] }, 'E2BIG'],
])('%s: calls of the tool fail, and the other services go on', async (_what, changes, code) => {
  [provider, router] = await Promise.all([startProvider(), startTunnelRouter()]);
  const services = [modelAt('m', provider.url), toolOfScript('t', FILE, [], {}, changes)];
  running = runProxy({ url: router.url, services });
  const end = await router.next();
  await end.accept();
  expect(await running.logged('the tool ended')).toMatchObject({ how: `cannot be started (${code})` });
  for (const message of [INITIALIZE, callOf('echo')]) {
    const reply = await end.call({ ':path': '/tool/t' }, JSON.stringify(message));
    expect([reply.status, jsonOf(reply).error.code]).toEqual([502, -32_000]);
  }
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] });
  expect(await end.call({ ':path': '/model/m/chat/completions' }, body)).toMatchObject({ status: 200 });
});

it('a proxy without free file descriptors goes on', async () => {
  [provider, router] = await Promise.all([startProvider(), startTunnelRouter()]);
  running = runProxy({ url: router.url, services: [modelAt('m', provider.url)] });
  const script = `
    import { openSync } from 'node:fs';
    import { startChild } from ${JSON.stringify(new URL('../../../src/providers/proxy/stdio/child-process.ts', import.meta.url))};
    try { for (;;) openSync('/dev/null'); } catch {}
    const target = { command: 'true', args: [], env: {}, cwd: null };
    const nothing = () => {};
    const child = startChild({ target, env: {}, line: nothing, tooLong: nothing, tooLongEnd: nothing, complaint: nothing });
    const sent = child.send('{}');
    console.log(sent, await child.ended, await child.stop({ termMs: 1, killMs: 1 }));`;
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'ulimit -n 64 && exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  );
  expect(stdout, stderr).toBe('false cannot be started (EMFILE) cannot be started (EMFILE)\n');
});
