import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { bystandInTurns, expectUnharmed, NOISE_MS } from '../support/bystander.ts';
import { startGateway } from '../support/gateway.ts';
import { startProvider } from '../support/provider.ts';
import { ask, MODEL, modelBlock } from '../support/spine.ts';
import { unlessStalled } from '../support/unless-stalled.ts';
import { post } from './support/crowd.ts';
import type { FloodOrder } from './support/worst/flood-child.ts';
import { modelToml } from './support/worst/model-rows.ts';

// One account asks for 8 MiB of the worst JSON again and again. 99 % of the calls of another one wait no longer than
// twice as long as alone.

const CALLS = 100;
const STALL_MS = 100;

test('99 % of the calls of others beside the worst JSON take at most twice as long', async () => {
  const child = fork(join(import.meta.dirname, 'support/worst/flood-child.ts'));
  onTestFinished(() => void child.kill());
  const [port] = (await once(child, 'message')) as [number];
  const provider = await startProvider();
  const gateway = await startGateway({
    toml: modelToml(`http://127.0.0.1:${port}`) + modelBlock({ name: MODEL, provider: 'Quick', url: provider.url }),
    env: { TEST_UPSTREAM_KEY: 'upstream-key' },
  });
  onTestFinished(async () => {
    expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
    await gateway.stop();
    await provider.stop();
  });
  const [greedy, patient] = [await gateway.openAccount('greedy', 10), await gateway.openAccount('patient', 10)];
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const call = async () =>
    (await post(agent, `${gateway.baseUrl}/api/v1/chat/completions`, patient.key, ask('hello !tokens:5'))) === 200;
  let read = 0;
  const begin = () => {
    child.send({ origin: gateway.baseUrl, key: greedy.key } satisfies FloodOrder);
    return async () => {
      child.send({ origin: null, key: '' } satisfies FloodOrder);
      [read] = (await once(child, 'message')) as [number];
    };
  };
  // What runs for the first time is compiled.
  await bystandInTurns({ call, calls: 10 }, begin);
  await unlessStalled(STALL_MS, async () => {
    const { before, during } = await bystandInTurns({ call, calls: CALLS }, begin);
    expect(read).toBeGreaterThan(CALLS / 10);
    expectUnharmed(before, during);
    expect(during.p99Ms, JSON.stringify({ before, during })).toBeLessThanOrEqual(
      2 * Math.max(before.p99Ms, atThisLoad(NOISE_MS)),
    );
    if (process.env['WORST_SHOWN'] === '1') console.log(JSON.stringify({ before, during, read }));
  });
});
