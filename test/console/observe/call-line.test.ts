import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import { createCallLog, createCallObserver, createLogger } from '#observe';
import { answeredBy, exampleCall, exampleOffer, logConfig, settledBy } from './example-call.ts';

function capture(now = () => 1_250) {
  const lines: string[] = [];
  const { logger } = createLogger(logConfig(), { write: (line) => lines.push(line) });
  return {
    observer: createCallObserver([createCallLog(logger)], { now }),
    lines: () => lines.map((line) => JSON.parse(line)),
  };
}

describe('the log line of a call', () => {
  it('tells who called what, who served it, what it used and cost, and how long it took', () => {
    let at = 1_000;
    const { observer, lines } = capture(() => at);
    const call = exampleCall({ metadata: { session: 'abc' } });
    observer.started(call);
    at = 1_040.04;
    observer.firstByte(call, at);
    at = 1_250;
    observer.firstByte(call, at);
    observer.resolved(call, settledBy(exampleOffer()));
    observer.failed(call, new Error('after the resolution'));
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.any(Number),
        msg: 'call',
        request_id: 'req-1',
        generation_id: 'gen-1',
        account: 'tollgate:local:dev',
        key: 'laptop',
        primitive: 'model',
        service: 'demo/chat',
        provider: 'Demo',
        stream: true,
        status: 200,
        error: null,
        lock: 'settled',
        usage: { prompt: 12, completion: 34 },
        cost_micro_usd: 57,
        fee_micro_usd: 2,
        attempts: 1,
        first_byte_ms: 40,
        duration_ms: 250,
        metadata: { session: 'abc' },
      },
    ]);
  });

  it('counts failed attempts, each with a line of its own', () => {
    const { observer, lines } = capture();
    const first = exampleOffer('demo/chat', 'First');
    const second = exampleOffer('demo/chat', 'Second');
    const call = exampleCall({
      candidates: [first, second].map((offer) => ({ offer, price: offer.price, estimate: 1n })),
    });
    observer.started(call);
    observer.attemptStarted(call, first, call.begunAt);
    observer.attemptFailed(
      call,
      first,
      new UpstreamFailure('502', { status: 502, retryable: true, attributedTo: 'provider' }),
    );
    observer.attemptStarted(call, second, call.begunAt);
    observer.flagged(call, second, { flags: ['usage_missing'] }, null);
    observer.resolved(call, settledBy(second));
    expect(lines().map(({ msg, level, provider }) => [msg, level, provider])).toEqual([
      ['attempt failed', 'warn', 'First'],
      ['provider flagged', 'warn', 'Second'],
      ['call', 'info', 'Second'],
    ]);
    expect(lines()[2]).toMatchObject({ attempts: 2 });
  });

  it('says of a flagged reply what was claimed, what is possible and what is billed', () => {
    const { observer, lines } = capture();
    const call = exampleCall();
    observer.started(call);
    const claims = [{ meter: 'completion', claimed: 90_000, most: 1_210 }] as const;
    const usage = { prompt: 12n, completion: 1_210n };
    observer.flagged(call, exampleOffer(), { flags: ['usage_implausible'], claims }, usage);
    observer.flagged(call, exampleOffer(), { flags: ['usage_missing'] }, null);
    expect(lines().map(({ msg, flags, claims: told, usage: billed }) => [msg, flags, told, billed])).toEqual([
      ['provider flagged', ['usage_implausible'], claims, { prompt: 12, completion: 1_210 }],
      ['provider flagged', ['usage_missing'], undefined, null],
    ]);
  });

  it('names the error of a call that was refused before any lock', () => {
    const { observer, lines } = capture();
    const call = exampleCall();
    observer.started(call);
    observer.failed(
      call,
      new GatewayError('insufficient_balance', 'Insufficient balance for estimated cost: 0.001 USDC'),
    );
    expect(lines()[0]).toMatchObject({
      status: 402,
      error: 'insufficient_balance',
      lock: 'none',
      attempts: 0,
      provider: null,
      cost_micro_usd: 0,
    });
  });

  it('shows the stack of what nobody expected', () => {
    const { observer, lines } = capture();
    const call = exampleCall();
    observer.started(call);
    observer.resolved(
      call,
      settledBy(exampleOffer(), { state: 'released', end: null, error: new TypeError('x is not a function') }),
    );
    expect(lines()[0]).toMatchObject({
      status: 500,
      error: 'internal',
      lock: 'released',
      err: { type: 'TypeError', stack: expect.stringContaining('TypeError') },
    });
  });

  it('says when the client left', () => {
    const { observer, lines } = capture();
    const call = exampleCall();
    observer.started(call);
    observer.resolved(
      call,
      settledBy(exampleOffer(), {
        state: 'released',
        end: null,
        clientGone: true,
        error: new Error('the client is gone'),
      }),
    );
    expect(lines()[0]).toMatchObject({ status: 499, error: 'client_gone', client_gone: true });
    expect(lines()[0]).not.toHaveProperty('err');
  });

  it.each([
    ['failed', 'task_failed'],
    ['rejected', 'task_rejected'],
    ['error -32603', '-32603'],
    ['completed', null],
    ['canceled', null],
    ['a state of its own', null],
  ])('tells how the task of an agent ended: %s', (state, error) => {
    const { observer, lines } = capture();
    const agent = { ...exampleOffer(), id: 'agent/x', primitive: 'agent' as const };
    const call = exampleCall({ primitive: 'agent', candidates: [{ offer: agent, price: agent.price, estimate: 1n }] });
    observer.started(call);
    observer.resolved(call, settledBy(agent, { end: answeredBy(agent, state) }));
    expect(lines()[0]).toMatchObject({ status: 200, error });
  });

  it('keeps large metadata out', () => {
    const { observer, lines } = capture();
    const call = exampleCall({ metadata: { note: 'x'.repeat(5_000) } });
    observer.started(call);
    observer.resolved(call, settledBy(exampleOffer()));
    expect(lines()[0]).toMatchObject({ metadata: { truncated: true, bytes: 5_011 } });
  });

  it.each([
    ['x', 4_085],
    ['€', 1_361],
  ])('counts metadata in bytes: %s', (letter, most) => {
    const { observer, lines } = capture();
    for (const count of [most, most + 1]) {
      const call = exampleCall({ metadata: { note: letter.repeat(count) } });
      observer.started(call);
      observer.resolved(call, settledBy(exampleOffer()));
    }
    expect(lines()[0]).toMatchObject({ metadata: { note: letter.repeat(most) } });
    expect(lines()[1]).toMatchObject({ metadata: { truncated: true } });
  });
});
