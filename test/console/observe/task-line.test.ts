import { describe, expect, it } from 'vitest';
import { createLogger, createTaskLog } from '#observe';
import { concludedCall, exampleTask } from './example-task.ts';
import { logConfig } from './example-call.ts';

function capture(changes: Parameters<typeof logConfig>[0] = {}, style: 'json' | 'text' = 'json') {
  const lines: string[] = [];
  const { logger } = createLogger(logConfig(changes), { write: (line) => lines.push(line), style });
  return { log: createTaskLog(logger), lines };
}

describe('the log of tasks', () => {
  it('has a line for a call that is settled with its task, which tells what the line of the call could not', () => {
    const { log, lines } = capture();
    log.concluded!(concludedCall());
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        level: 'info',
        time: expect.any(Number),
        msg: 'call concluded',
        request_id: 'req-1',
        generation_id: 'gen-1',
        account: 'tollgate:local:dev',
        primitive: 'agent',
        service: 'demo/planner',
        provider: 'Demo',
        task: 'task-1',
        state: 'completed',
        outcome: 'complete',
        lock: 'settled',
        usage: { call: 1 },
        cost_micro_usd: 57,
        fee_micro_usd: 2,
        duration_ms: 61_000,
      },
    ]);
  });

  it('warns of an end without usage, of money that could not be charged, and of a task that was given up', () => {
    const { log, lines } = capture({ logLevel: 'warn' });
    log.begun!(exampleTask());
    log.ended!(exampleTask(), false);
    log.concluded!(concludedCall({ usage: null, flags: ['usage_missing'] }));
    const claims = [{ meter: 'call', claimed: 9, most: 1 }] as const;
    log.concluded!(concludedCall({ flags: ['usage_implausible'], claims }));
    log.ended!(exampleTask({ state: 'working' }), true);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'provider flagged', generation_id: 'gen-1', provider: 'Demo', flags: ['usage_missing'], usage: null },
      { msg: 'provider flagged', flags: ['usage_implausible'], claims, usage: { call: 1 }, alert: true },
      { msg: 'task given up', task: 'task-1', state: 'working' },
    ]);
    const { log: full, lines: all } = capture();
    full.concluded!(concludedCall({ settlement: { charged: 57n, fee: 2n, drawn: 0n, shortfall: 5n } }));
    expect(JSON.parse(all[0]!)).toMatchObject({ shortfall_micro_usd: 5 });
  });

  it('is for people a line as that of a call, on which a provider’s words do not draw', () => {
    const { log, lines } = capture({}, 'text');
    log.concluded!(concludedCall({ task: exampleTask({ state: 'done\u001b[2J' }) }));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/done\?\[2J {2}demo\/planner {2}by Demo {2}1 call {2}\$0\.000057 {2}61000 ms/);
    expect(lines[0]).not.toContain('\u001b');
  });
});
