import { expect, test } from 'vitest';
import { ALICE, event, hook, KEY, listenForNews, openWorld } from './webhook-world.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const hang = () => {};

test('a receiver that hangs holds up no other, not even of the same task', async () => {
  const { gateway } = await openWorld('sqlite');
  const webhooks = gateway();
  const [slow, quick] = [await listenForNews(hang), await listenForNews()];
  await webhooks.set(KEY, ALICE, hook(slow.url, { name: 'slow' }));
  await webhooks.set(KEY, ALICE, hook(quick.url, { name: 'quick' }));
  for (const body of ['one', 'two', 'three']) await webhooks.deliver(KEY, event(body));
  await quick.until(3);
  expect(quick.bodies()).toEqual(['one', 'two', 'three']);
  await slow.until(1);
  expect(slow.got).toHaveLength(1);
});

test('an account whose receivers all hang has no more than its places, and others go on', async () => {
  const { gateway } = await openWorld('sqlite');
  const webhooks = gateway({ relayLimits: { inFlightMax: 12, perAccountMax: 4, perReceiverMax: 100 } });
  const [slow, quick] = [await listenForNews(hang), await listenForNews()];
  const task = (n: number) => ({ ...KEY, taskId: `task-${n}` });
  for (let n = 0; n < 20; n += 1) {
    await webhooks.set(task(n), ALICE, hook(slow.url));
    await webhooks.deliver(task(n), event('slow'));
  }
  await slow.until(4);
  for (let n = 100; n < 120; n += 1) {
    await webhooks.set(task(n), { account: 'bob', within: null }, hook(quick.url));
    await webhooks.deliver(task(n), event('quick'));
  }
  await quick.until(20);
  expect(slow.got).toHaveLength(4);
});

test('a receiver that hangs for many accounts has no more than its places', async () => {
  const { gateway } = await openWorld('sqlite');
  const webhooks = gateway({ relayLimits: { inFlightMax: 12, perAccountMax: 4, perReceiverMax: 6 } });
  const [slow, quick] = [await listenForNews(hang), await listenForNews()];
  for (let n = 0; n < 20; n += 1) {
    const key = { ...KEY, taskId: `task-${n}` };
    await webhooks.set(key, { account: `account-${n}`, within: null }, hook(slow.url));
    await webhooks.deliver(key, event('slow'));
  }
  await slow.until(6);
  await webhooks.set({ ...KEY, taskId: 'other' }, ALICE, hook(quick.url));
  await webhooks.deliver({ ...KEY, taskId: 'other' }, event('quick'));
  await quick.until(1);
  expect(slow.got).toHaveLength(6);
});

test('what had no place is sent as soon as there is one', async () => {
  const { gateway } = await openWorld('sqlite');
  const webhooks = gateway({ relayLimits: { inFlightMax: 2 } });
  const queued = Promise.withResolvers<void>();
  const receiver = await listenForNews((_got, response) => void queued.promise.then(() => response.end()));
  for (let n = 0; n < 30; n += 1) {
    const key = { ...KEY, taskId: `task-${n}` };
    await webhooks.set(key, ALICE, hook(receiver.url));
    await webhooks.deliver(key, event(`${n}`));
  }
  await receiver.until(2);
  expect(receiver.got).toHaveLength(2);
  queued.resolve();
  await receiver.until(30);
  expect(new Set(receiver.bodies()).size).toBe(30);
});

test('an attempt that hangs is given up in its time, and tried again', async () => {
  const { gateway, clock } = await openWorld('sqlite');
  const webhooks = gateway({ relayLimits: { timeoutMs: atThisLoad(400) } });
  let hangs = true;
  const receiver = await listenForNews((_got, response) => void (hangs || response.end()));
  await webhooks.set(KEY, ALICE, hook(receiver.url));
  await webhooks.deliver(KEY, event('one'));
  await webhooks.run();
  hangs = false;
  clock.now += 5_000;
  await webhooks.run();
  expect(receiver.bodies()).toEqual(['one', 'one']);
});
