import { expect, it } from 'vitest';
import { UpstreamFailure } from '#wire';
import { createCallObserver, createMetrics, createRunningAttempts, readCallsNow } from '#observe';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';

const REFUSED = new UpstreamFailure('502', { status: 502, retryable: true, attributedTo: 'provider' });

it('the attempts that run are counted at their providers, and the oldest that waits is known whichever ends', async () => {
  let at = 0;
  const running = createRunningAttempts();
  const metrics = createMetrics({ processMetrics: false, running, elapsed: () => at });
  const observer = createCallObserver([metrics.sink], { now: () => at, running });
  const [odd, other] = [exampleOffer('demo/chat', 'A "quoted\\" name'), exampleOffer('demo/chat', 'Other')];
  const calls = [1, 2, 3, 4].map((id) =>
    exampleCall({
      id: `gen-${id}`,
      begunAt: 0,
      candidates: [odd, other].map((offer) => ({ offer, price: offer.price, estimate: 1n })),
    }),
  );
  const free = exampleCall({ id: 'gen-5', free: 'tools/list', begunAt: 0 });
  const now = async () =>
    readCallsNow(await metrics.text()).map(({ provider, inFlight, waiting, oldestWaitS }) => [
      provider,
      inFlight,
      waiting,
      oldestWaitS,
    ]);
  for (const [index, call] of calls.entries()) {
    at = index * 1_000;
    observer.started(call);
    observer.attemptStarted(call, odd, at);
  }
  observer.started(free);
  observer.attemptStarted(free, odd, at);
  at = 10_000;
  expect(await now()).toEqual([['A "quoted\\" name', 4, 4, 10]]);
  // From the middle of those that wait, twice, then the oldest.
  observer.firstByte(calls[1]!, at);
  // A session that waits for its client does not wait for its provider.
  observer.idle(calls[2]!);
  expect(await now()).toEqual([['A "quoted\\" name', 4, 2, 10]]);
  observer.attemptFailed(calls[0]!, odd, REFUSED);
  observer.attemptStarted(calls[0]!, other, at);
  at = 12_000;
  expect(await now()).toEqual([
    ['A "quoted\\" name', 3, 1, 9],
    ['Other', 1, 1, 2],
  ]);
  observer.workBegins(calls[2]!, at);
  at = 15_000;
  observer.resolved(calls[3]!, settledBy(odd));
  expect(await now()).toEqual([
    ['Other', 1, 1, 5],
    ['A "quoted\\" name', 2, 1, 3],
  ]);
  for (const call of calls) observer.resolved(call, settledBy(odd));
  expect(await now()).toEqual([]);
});
