import { expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { OWN_ACCOUNT, type Caller } from '#accounts';
import { createCallLog, createLogger, createOutageLog } from '#observe';
import { exampleToolCall, exampleTools, logConfig } from './example-call.ts';

// What is away is told once and not at each try.

const MINUTE = 60_000;
const TIME = { beganMs: 0, durationMs: 1 };
const OURSELVES: Caller = { account: OWN_ACCOUNT, key: null, wallet: null };

function world(logLevel: 'debug' | 'info' | 'warn' = 'info') {
  const lines: Record<string, unknown>[] = [];
  const { logger } = createLogger(logConfig({ logLevel }), {
    style: 'json',
    write: (line) => lines.push(JSON.parse(line)),
  });
  const clock = { at: 0 };
  const outages = createOutageLog(logger, () => clock.at);
  return { lines, logger, outages, clock, told: () => lines.splice(0) };
}

test('the first failure is a line, then one each ten minutes with what was left out, then one when it works', () => {
  const { outages, clock, told } = world();
  const fail = () => outages.failed('a', { err: new Error('refused') }, 'a is away');
  fail();
  outages.failed('b', {}, 'b is away');
  expect(told()).toMatchObject([{ level: 'warn', msg: 'a is away' }, { msg: 'b is away' }]);
  for (let minute = 1; minute < 10; minute++) {
    clock.at = minute * MINUTE;
    fail();
  }
  expect(told()).toEqual([]);
  clock.at = 10 * MINUTE;
  fail();
  fail();
  expect(told()).toMatchObject([{ level: 'warn', msg: 'a is away', left_out: 9 }]);
  outages.works('a', { a: 1 }, 'a is back');
  outages.works('a', { a: 1 }, 'a is back');
  outages.works('c', {}, 'c is back');
  expect(told()).toMatchObject([{ level: 'info', a: 1, left_out: 1, msg: 'a is back' }]);
});

test('what fails and works in turns is not logged at each turn', () => {
  const { outages, clock, told } = world();
  for (let turn = 0; turn < 100; turn++) {
    clock.at += 1_000;
    outages.failed('a', {}, 'away');
    outages.works('a', {}, 'back');
  }
  expect(told()).toHaveLength(2);
});

test('of 400 services that the gateway cannot list, each is one line without an id of a call', () => {
  const { logger, outages, told } = world();
  const log = createCallLog(logger, undefined, outages);
  const failure = new UpstreamFailure('connect ECONNREFUSED', { retryable: true, attributedTo: 'provider' });
  const offers = Array.from({ length: 400 }, (_, index) => ({ ...exampleTools(), id: `offer-${index}` }));
  for (const method of ['server/discover', 'initialize', 'tools/list', 'prompts/list'])
    for (const offer of offers)
      log.attemptFailed!(exampleToolCall(offer, null, { free: method, caller: OURSELVES }), offer, failure, TIME);
  const lines = told();
  expect(lines).toHaveLength(400);
  expect(lines[0]).toEqual({
    level: 'warn',
    time: expect.any(Number),
    service: 'demo/weather',
    provider: 'Demo',
    reason: 'connect ECONNREFUSED',
    msg: 'the service cannot be reached: its lists are read again later',
  });
});

test('each attempt of a customer has its line, and only the first is a warning', () => {
  const { logger, outages, told } = world();
  const log = createCallLog(logger, undefined, outages);
  const failure = new UpstreamFailure('connect ECONNREFUSED', { retryable: true, attributedTo: 'provider' });
  const offer = exampleTools();
  for (let call = 0; call < 3; call++) log.attemptFailed!(exampleToolCall(offer, null), offer, failure, TIME);
  expect(told().map(({ level, msg, generation_id }) => [level, msg, generation_id])).toEqual([
    ['warn', 'attempt failed', 'gen-1'],
    ['info', 'attempt failed', 'gen-1'],
    ['info', 'attempt failed', 'gen-1'],
  ]);
});
