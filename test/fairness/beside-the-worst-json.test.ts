import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { expectUnharmedInTurns } from '../support/bystander.ts';
import { startGateway } from '../support/gateway.ts';
import { startProvider } from '../support/provider.ts';
import { ask, MODEL, modelBlock } from '../support/spine.ts';
import { post } from './support/crowd.ts';
import type { FloodOrder } from './support/worst/flood-child.ts';
import { modelToml } from './support/worst/model-rows.ts';

// One account asks for 8 MiB of the worst JSON again and again. 99 % of the calls of another one wait no longer than
// twice as long as while the same is asked of another gateway on this machine, which takes the same share of its
// processors and disk.

const CALLS = 100;

test('99 % of the calls of others beside the worst JSON take at most twice as long', async () => {
  const child = fork(join(import.meta.dirname, 'support/worst/flood-child.ts'));
  onTestFinished(() => void child.kill());
  const [port] = (await once(child, 'message')) as [number];
  const provider = await startProvider();
  onTestFinished(() => provider.stop());
  const start = async () => {
    const started = await startGateway({
      toml: modelToml(`http://127.0.0.1:${port}`) + modelBlock({ name: MODEL, provider: 'Quick', url: provider.url }),
      env: { TEST_UPSTREAM_KEY: 'upstream-key' },
    });
    onTestFinished(async () => {
      expect(await started.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
      await started.stop();
    });
    return { gateway: started, greedy: await started.openAccount('greedy', 10) };
  };
  const [{ gateway, greedy }, elsewhere] = [await start(), await start()];
  const patient = await gateway.openAccount('patient', 10);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const call = async () =>
    (await post(agent, `${gateway.baseUrl}/api/v1/chat/completions`, patient.key, ask('hello !tokens:5'))) === 200;
  let read = 0;
  const beginAt =
    (origin: string, { key }: { readonly key: string }) =>
    () => {
      child.send({ origin, key } satisfies FloodOrder);
      return async () => {
        child.send({ origin: null, key: '' } satisfies FloodOrder);
        [read] = (await once(child, 'message')) as [number];
      };
    };
  const [begin, beginElsewhere] = [
    beginAt(gateway.baseUrl, greedy),
    beginAt(elsewhere.gateway.baseUrl, elsewhere.greedy),
  ];
  // What runs for the first time is compiled.
  for (let n = 0; n < 10; n += 1) expect(await call()).toBe(true);
  await expectUnharmedInTurns('p99Ms', { call, calls: CALLS }, begin, beginElsewhere);
  expect(read).toBeGreaterThan(CALLS / 10);
});
