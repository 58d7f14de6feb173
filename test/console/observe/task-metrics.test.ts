import { describe, expect, it } from 'vitest';
import type { Offer } from '#catalog';
import { createCallObserver, createMetrics } from '#observe';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';
import { concludedCall, exampleTask } from './example-task.ts';

const LABELS = 'gen_ai_operation_name="invoke_agent",gen_ai_request_model="demo/planner",gen_ai_provider_name="Demo"';
const planner: Offer = { ...exampleOffer('demo/planner'), id: exampleTask().offerId, primitive: 'agent', model: null };

const linesOf = async ({ text }: { text(): Promise<string> }) => (await text()).split('\n');

describe('the metrics of tasks', () => {
  it('count what a pending call is charged at last where other calls’ money is, and the call once', async () => {
    const metrics = createMetrics({ processMetrics: false });
    const observer = createCallObserver([metrics.sink], { now: () => 1_500 });
    const charge = (id: string, changes: Parameters<typeof settledBy>[1] = {}) => {
      const call = exampleCall({
        id,
        primitive: 'agent',
        service: planner.service,
        candidates: [{ offer: planner, price: planner.price, estimate: 100n }],
      });
      observer.started(call);
      observer.resolved(call, settledBy(planner, changes));
    };
    const nothing = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };
    charge('gen-0');
    charge('gen-1', { state: 'pending', settlement: nothing, end: null });
    metrics.tasks.concluded!(
      concludedCall({
        usage: { prompt: 5n, completion: 7n },
        settlement: { charged: 40n, fee: 1n, drawn: 0n, shortfall: 3n },
      }),
    );
    const lines = await linesOf(metrics);
    for (const line of [
      `tollgate_charged_micro_usd_total{${LABELS}} 97`,
      `tollgate_fees_micro_usd_total{${LABELS}} 3`,
      'tollgate_shortfall_micro_usd_total 3',
      'tollgate_calls_total{lock="settled"} 1',
      'tollgate_calls_total{lock="pending"} 1',
      `gen_ai_server_request_duration_seconds_count{${LABELS.replace(/,gen_ai_provider_name=.*/, '')}} 2`,
      `gen_ai_client_token_usage_sum{${LABELS},gen_ai_token_type="input"} 17`,
      `gen_ai_client_token_usage_sum{${LABELS},gen_ai_token_type="output"} 41`,
    ])
      expect(lines).toContain(line);
  });

  it('count tasks as they begin, and as they end by their state', async () => {
    const metrics = createMetrics({ processMetrics: false });
    for (let n = 0; n < 3; n++) metrics.tasks.begun!(exampleTask());
    metrics.tasks.ended!(exampleTask(), false);
    metrics.tasks.ended!(exampleTask({ state: 'working' }), true);
    metrics.tasks.concluded!(concludedCall({ flags: ['usage_missing'] }));
    const lines = await linesOf(metrics);
    for (const line of [
      'tollgate_tasks_begun_total{primitive="agent"} 3',
      'tollgate_tasks_ended_total{primitive="agent",state="completed"} 1',
      'tollgate_tasks_ended_total{primitive="agent",state="gave_up"} 1',
      `tollgate_provider_flags_total{${LABELS},flag="usage_missing"} 1`,
    ])
      expect(lines).toContain(line);
  });

  it('have a bounded number of states, whatever providers call them', async () => {
    const metrics = createMetrics({ processMetrics: false });
    for (let n = 0; n < 1_000; n++) metrics.tasks.ended!(exampleTask({ state: `state-${n}` }), false);
    const lines = await linesOf(metrics);
    expect(lines.filter((line) => line.startsWith('tollgate_tasks_ended_total{'))).toHaveLength(33);
    expect(lines).toContain('tollgate_tasks_ended_total{primitive="agent",state="other"} 968');
  });

  it('show how many go on, over all gateways; and -1 while the database is silent', async () => {
    let live = () => Promise.resolve(7);
    const metrics = createMetrics({ processMetrics: false, tasksLive: () => live() });
    expect(await linesOf(metrics)).toContain('tollgate_tasks_live 7');
    live = () => Promise.reject(new Error('gone'));
    expect(await linesOf(metrics)).toContain('tollgate_tasks_live -1');
  });
});
