import { describe, expect, test } from 'vitest';
import { createGuardedFetch } from '../../../src/gateway/network/upstream/guarded-fetch.ts';
import { delayAfter, outcomeOf } from '../../../src/gateway/webhooks/webhook-relay.ts';
import { ALICE, event, hook, KEY, listenForNews, openWorld } from './webhook-world.ts';

const MINUTE_MS = 60_000;

test('what a status means', () => {
  const meaning = (outcome: string) =>
    [200, 202, 204, 301, 308, 400, 401, 404, 408, 410, 422, 425, 429, 500, 502, 503, 504].filter(
      (status) => outcomeOf(status) === outcome,
    );
  expect(meaning('delivered')).toEqual([200, 202, 204]);
  expect(meaning('again')).toEqual([408, 425, 429, 500, 502, 503, 504]);
  expect(meaning('never')).toEqual([301, 308, 400, 401, 404, 422]);
  expect(meaning('gone')).toEqual([410]);
});

test('waits grow, differ from one to the next, and heed the receiver within reason', () => {
  const waits = (random: number) => [1, 2, 3, 4, 5].map((attempts) => delayAfter(attempts, () => random));
  expect(waits(0.5)).toEqual([5_000, 30_000, 120_000, 420_000, null]);
  expect(waits(0)).toEqual([3_750, 22_500, 90_000, 315_000, null]);
  expect(waits(1)).toEqual([6_250, 37_500, 150_000, 525_000, null]);
  expect(delayAfter(1, () => 0.5, '60')).toBe(60_000);
  expect(delayAfter(1, () => 0.5, '1')).toBe(5_000);
  expect(delayAfter(1, () => 0.5, '999999')).toBe(600_000);
  expect(delayAfter(1, () => 0.5, '59.2')).toBe(60_000);
  expect(delayAfter(1, () => 0.5, new Date(Date.now() + 86_400_000).toUTCString())).toBe(600_000);
  for (const strange of ['', '-5', 'Fri, 20 Nov 2015 10:00:00 GMT', '1e9', ['60'], 60, null])
    expect(delayAfter(1, () => 0.5, strange)).toBe(5_000);
});

describe('a receiver that fails', () => {
  test('is tried five times in about ten minutes, and what follows waits for that', async () => {
    const { gateway, clock, lost } = await openWorld('sqlite');
    const webhooks = gateway();
    const begun = clock.now;
    const times: number[] = [];
    const receiver = await listenForNews((_got, response) => {
      times.push(clock.now - begun);
      response.writeHead(500).end();
    });
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.deliver(KEY, event('two'));
    while (receiver.bodies().filter((body) => body === 'two').length === 0 && clock.now < begun + 60 * MINUTE_MS) {
      await webhooks.run();
      clock.now += 1_000;
    }
    expect(receiver.bodies()).toEqual(['one', 'one', 'one', 'one', 'one', 'two']);
    expect(times).toEqual([0, 5_000, 35_000, 155_000, 575_000, 575_000]);
    expect(lost).toEqual([
      {
        account: 'alice',
        service: KEY.service,
        taskId: KEY.taskId,
        receiver: new URL(receiver.url).origin,
        reason: 'the receiver answered 500, the last of 5 times',
      },
    ]);
  });

  test('and recovers gets everything, in order', async () => {
    const { gateway, clock, lost } = await openWorld('sqlite');
    const webhooks = gateway();
    let failures = 3;
    const receiver = await listenForNews((_got, response) => void response.writeHead(failures-- > 0 ? 503 : 200).end());
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    for (const body of ['one', 'two', 'three']) await webhooks.deliver(KEY, event(body));
    for (let minute = 0; minute < 10; minute += 1) {
      await webhooks.run();
      clock.now += MINUTE_MS;
    }
    expect(receiver.bodies()).toEqual(['one', 'one', 'one', 'one', 'two', 'three']);
    expect(lost).toEqual([]);
  });

  test.each([400, 401, 404, 302])('with %i is not asked again, and gets what follows', async (status) => {
    const { gateway, clock, lost } = await openWorld('sqlite');
    const webhooks = gateway();
    const receiver = await listenForNews(
      ({ body }, response) => void response.writeHead(body === 'one' ? status : 200, { location: '/else' }).end(),
    );
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    for (const body of ['one', 'two']) await webhooks.deliver(KEY, event(body));
    await webhooks.run();
    clock.now += 60 * MINUTE_MS;
    await webhooks.run();
    expect(receiver.bodies()).toEqual(['one', 'two']);
    expect(lost.map(({ reason }) => reason)).toEqual([`the receiver answered ${status}`]);
  });

  test('with 410 gets nothing more of what waits', async () => {
    const { gateway, clock } = await openWorld('sqlite');
    const webhooks = gateway();
    const receiver = await listenForNews(async (_got, response) => {
      await webhooks.deliver(KEY, event('two'));
      response.writeHead(410).end();
    });
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    clock.now += 60 * MINUTE_MS;
    await webhooks.run();
    expect(receiver.bodies()).toEqual(['one']);
    // It is over, and not only what waited.
    expect(await webhooks.list(KEY, ALICE)).toEqual([]);
    await webhooks.deliver(KEY, event('three'));
    await webhooks.run();
    expect(receiver.bodies()).toEqual(['one']);
  });

  test('with 410 while its client names another receiver ends nothing for that one', async () => {
    const { gateway, clock } = await openWorld('sqlite');
    const webhooks = gateway();
    const other = await listenForNews();
    const receiver = await listenForNews(async (_got, response) => {
      await webhooks.set(KEY, ALICE, hook(other.url));
      response.writeHead(410).end();
    });
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    clock.now += 60 * MINUTE_MS;
    await webhooks.deliver(KEY, event('two'));
    await webhooks.run();
    expect(await webhooks.list(KEY, ALICE)).toHaveLength(1);
    expect(receiver.bodies()).toEqual(['one']);
    expect(other.bodies()).toEqual(['one', 'two']);
  });

  test('by closing the connection is tried again', async () => {
    const { gateway, clock } = await openWorld('sqlite');
    const webhooks = gateway();
    let broken = false;
    const receiver = await listenForNews((_got, response) => {
      if (broken) return void response.end();
      broken = true;
      response.destroy();
    });
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    clock.now += MINUTE_MS;
    await webhooks.run();
    expect(receiver.bodies()).toEqual(['one', 'one']);
  });

  test('to be one that may be called is called never', async () => {
    const { gateway, clock, lost } = await openWorld('sqlite');
    const webhooks = gateway({ fetch: createGuardedFetch({ allowPrivate: false }) });
    const receiver = await listenForNews();
    await webhooks.set(KEY, ALICE, hook(receiver.url.replace('http:', 'https:')));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    clock.now += 60 * MINUTE_MS;
    await webhooks.run();
    expect(receiver.got).toEqual([]);
    expect(lost).toHaveLength(1);
  });
});
