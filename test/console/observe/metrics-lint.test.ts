import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createCallObserver, createMergedMetrics, createMetrics } from '#observe';
import { findProgram } from '../../support/find-program.ts';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';

/** What Prometheus finds wrong with the names, types and help texts of metrics. */
const promtool = (text: string) => {
  const { file, env } = findProgram('promtool');
  const { status, stdout, stderr } = spawnSync(file, ['check', 'metrics'], { input: text, env, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
};

/** Everything that a gateway can show, with a call in it. */
const everything = () => {
  const metrics = createMetrics();
  metrics.showFunds(async () => ({
    chains: [{ network: 'eip155:1', answers: true, comparedAt: 0, held: 1n, booked: 1n, halted: false }],
    open: [],
  }));
  const observer = createCallObserver([metrics.sink], { now: () => 1_000 });
  const call = exampleCall();
  observer.started(call);
  observer.resolved(call, settledBy(exampleOffer()));
  metrics.answered('GET', '/health/ready', 200);
  metrics.tunnelEvent('left');
  metrics.rateLimited('requests');
  metrics.ledgerBatch({ size: 1, durationMs: 1 });
  return metrics;
};

test('metrics of a process, and of several together, are as Prometheus wants them', async () => {
  const metrics = everything();
  const merged = createMergedMetrics();
  merged.take(1, await metrics.snapshot());
  merged.take(2, await metrics.snapshot());
  for (const text of [await metrics.text(), await merged.text()]) {
    expect(text).toContain('nodejs_eventloop_lag_seconds');
    expect(text).toContain('tollgate_treasury_held_micro_usd');
    expect(promtool(text)).toEqual({ status: 0, said: '' });
  }
});
