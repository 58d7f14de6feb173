import { expect, test } from 'vitest';
import { CancelSource, eitherOf } from '../../src/billing/cancel-signal.ts';

test('a signal of two aborts with the first of them, and has its reason', () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const either = eitherOf(one.signal, other.signal);
  expect(either.aborted).toBe(false);
  other.abort(new Error('cancelled'));
  one.abort(new Error('gone'));
  expect(either.reason).toEqual(new Error('cancelled'));
});

test('it is aborted at once if one of the two is, and a departure counts as well', () => {
  const cancelSource = new CancelSource();
  const running = eitherOf(cancelSource, new AbortController().signal);
  cancelSource.abort();
  expect(running.aborted).toBe(true);
  expect(eitherOf(new AbortController().signal, cancelSource).aborted).toBe(true);
  expect(eitherOf(AbortSignal.abort(new Error('over')), cancelSource).reason).toEqual(new Error('over'));
});
