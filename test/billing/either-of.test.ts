import { expect, test } from 'vitest';
import { Departure, eitherOf } from '../../src/billing/departure.ts';

test('a signal of two aborts with the first of them, and has its reason', () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const either = eitherOf(one.signal, other.signal);
  expect(either.aborted).toBe(false);
  other.abort(new Error('cancelled'));
  one.abort(new Error('gone'));
  expect(either.reason).toEqual(new Error('cancelled'));
});

test('it is aborted at once if one of the two is, and a departure counts as well', () => {
  const departure = new Departure();
  const running = eitherOf(departure, new AbortController().signal);
  departure.abort();
  expect(running.aborted).toBe(true);
  expect(eitherOf(new AbortController().signal, departure).aborted).toBe(true);
  expect(eitherOf(AbortSignal.abort(new Error('over')), departure).reason).toEqual(new Error('over'));
});
