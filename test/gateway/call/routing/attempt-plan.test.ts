import { describe, expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import type { Candidate } from '../../../../src/gateway/call/call.ts';
import { nextPlace, planAttempts, repeatsAfter } from '../../../../src/gateway/call/routing/attempt-plan.ts';
import { offer } from './offers.ts';

const candidates = (service: string, ...providers: string[]): Candidate[] =>
  providers.map((provider) => {
    const one = { ...offer({ provider }), service };
    return { offer: one, price: one.price, estimate: 1n };
  });
const names = (plan: readonly Candidate[]) => plan.map(({ offer: one }) => one.service + one.provider.name).join(' ');
const A = candidates('a', '1', '2', '3');
const B = candidates('b', '1', '2', '3');
const C = candidates('c', '1');
const D = candidates('d', '1');

describe('the plan', () => {
  test.each([
    ['one model has all attempts', [A], 'a1 a2 a3'],
    ['the first of two models leaves one to the other', [A, B], 'a1 a2 b1'],
    ['what the first does not need, the other has', [C, B], 'c1 b1 b2'],
    ['each model has one, however many there are', [A, B, C, D], 'a1 b1 c1 d1'],
  ])('%s', (_name, models, plan) => {
    expect(names(planAttempts(models, 3, () => false))).toBe(plan);
  });

  test('offers that rest come after healthy fallbacks', () => {
    const isResting = ({ offer: { service, provider } }: Candidate) => service === 'a' && provider.name !== '2';
    expect(names(planAttempts([A, B], 4, isResting))).toBe('a2 b1 a1 a3');
  });

  test('a closed model is passed over', () => {
    expect([nextPlace(A, 0, null), nextPlace(A, 2, null)]).toEqual([1, -1]);
    expect(nextPlace([...A, ...C], 0, new Set(['a']))).toBe(3);
    expect(nextPlace([A[0]!, C[0]!, A[1]!], 1, new Set(['a']))).toBe(-1);
  });
});

describe('the only offer is asked again', () => {
  const failure = (more: Partial<ConstructorParameters<typeof UpstreamFailure>[1]>) =>
    new UpstreamFailure('it failed', { retryable: true, attributedTo: 'provider', ...more });
  const REFUSED = { unsent: true, unreachable: true };
  test.each([
    ['after a 500', { status: 500 }, 'model', 500],
    ['after a 503 that names a time', { status: 503, retryAfterS: 2 }, 'model', 2_000],
    ['after a 429 that names a time', { status: 429, retryAfterS: 3 }, 'image', 3_000],
    ['after a refused connection, also of a tool', REFUSED, 'tool', 500],
    ['not after a 429 without a time', { status: 429 }, 'model', null],
    ['not after a longer time', { status: 503, retryAfterS: 4 }, 'model', null],
    ['not after a 500 of a tool, which may have acted', { status: 500 }, 'tool', null],
    ['not after another status', { status: 404 }, 'model', null],
    ['not after what may not be repeated', { status: 500, retryable: false }, 'model', null],
  ] as const)('%s', (_name, more, primitive, after) => {
    expect(repeatsAfter(failure(more), primitive, 10)).toBe(after);
  });

  test('not after an attempt that took long', () => {
    expect(repeatsAfter(failure({ status: 500 }), 'model', 3_001)).toBeNull();
  });
});
