import { describe, expect, it } from 'vitest';
import { createCallLog, createCallObserver, createLogger } from '#observe';
import { answeredBy, exampleToolCall, exampleTools, logConfig, settledBy } from './example-call.ts';

const OFFER = exampleTools();
const NOTHING = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

function lineOf(tool: string, reason: string, style: 'json' | 'text' = 'json'): string {
  const lines: string[] = [];
  const { logger } = createLogger(logConfig(), { style, write: (line) => lines.push(line) });
  const observer = createCallObserver([createCallLog(logger)], { now: () => 1_250 });
  const call = exampleToolCall(OFFER, tool);
  observer.started(call);
  const pending = reason === 'input_required';
  const paid = reason === 'complete' ? {} : { settlement: NOTHING };
  observer.resolved(
    call,
    settledBy(OFFER, { end: answeredBy(OFFER, reason), state: pending ? 'pending' : 'settled', ...paid }),
  );
  return lines[0]!;
}
const parse = (line: string) => JSON.parse(line) as Record<string, unknown>;

describe('the log line of a tool call', () => {
  it('names the tool', () => {
    expect(parse(lineOf('forecast', 'complete'))).toMatchObject({
      msg: 'call',
      level: 'info',
      tool: 'forecast',
      error: null,
      lock: 'settled',
      cost_micro_usd: 57,
    });
    expect(parse(lineOf('forecast', 'complete'))).not.toHaveProperty('method');
  });

  it.each([
    ['isError', 'tool_error'],
    ['error -32602', '-32602'],
  ])('tells an answer of %s as the error %s', (reason, error) => {
    const line = parse(lineOf('forecast', reason));
    expect(line).toMatchObject({ status: 200, error, cost_micro_usd: 0 });
    expect(line).not.toHaveProperty('reason');
    expect(line).not.toHaveProperty('err');
  });

  it('tells that the work waits for the consumer', () => {
    expect(parse(lineOf('forecast', 'input_required'))).toMatchObject({
      lock: 'pending',
      error: null,
      cost_micro_usd: 0,
    });
  });

  it('takes no name of any length, and none that draws on a terminal', () => {
    expect(parse(lineOf('x'.repeat(10_000), 'isError'))['tool']).toHaveLength(128);
    const line = lineOf('a\u001b[2Jb\nc', 'complete', 'text');
    expect(line).toContain('demo/weather a?[2Jb?c  by Demo');
    expect(line.indexOf('\n')).toBe(line.length - 1);
  });
});
