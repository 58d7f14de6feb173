import { expect, onTestFinished, test } from 'vitest';
import { createPackageLog } from '../../../src/providers/ai-sdk/package-log.ts';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { installHostile } from './support/hostile-package.ts';

test('a reload that changes the cost or the timeouts of a model keeps the process of its package', async () => {
  const workers = createSdkWorkers({
    connectionsMax: 100,
    headTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    wall: 'if_available',
    hidden: [],
    log: () => {},
    tell: () => {},
    times: { startMs: 60_000, pingMs: 100, stallMs: 60_000 },
  });
  onTestFinished(() => workers.close());
  const target = { kind: 'sdk', sdk: 'hostile', settings: {}, secrets: {}, directory: installHostile() } as const;
  const rates = (prompt: bigint) => ({ cost: { rates: { prompt, completion: 0n }, serviceTiers: {} } });
  const dispatcher = workers.open({ ...target, ...rates(1n) });
  const http = { kind: 'http', url: 'http://127.0.0.1:9/v1', apiKey: null, ...rates(3n) } as const;
  const timeouts = { headMs: 5_000, firstEventMs: null };
  workers.keepOnly([{ ...target, ...rates(2n), timeouts }, http]);
  expect(workers.open({ ...target, ...rates(2n), timeouts })).toBe(dispatcher);
  workers.keepOnly([http]);
  expect(workers.open(target)).not.toBe(dispatcher);
});

test('lines and addresses have budgets of their own, which a minute adds one to', () => {
  const log: string[] = [];
  let now = 0;
  const { line, refused, own } = createPackageLog(
    (text) => void log.push(text),
    () => now,
  );
  for (let at = 0; at < 200; at++) line('line');
  for (let at = 0; at < 200; at++) refused('address');
  const count = (of: string) => log.filter((text) => text === of).length;
  expect([count('line'), count('address')]).toEqual([100, 100]);
  now += 60_000;
  for (let at = 0; at < 5; at++) line('line');
  own('end');
  expect([count('line'), count('address'), count('end')]).toEqual([101, 100, 1]);
});
