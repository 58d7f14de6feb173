import { describe, expect, test } from 'vitest';
import { WEBHOOK_BODY_BYTES_MAX } from '../../../src/gateway/webhooks/webhook.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { BOTH_ENGINES } from '../../support/engines.ts';
import { solanaWallet } from '../../support/wallets.ts';
import { ALICE, event, hook, KEY, listenForNews, openWorld } from './webhook-world.ts';

const down = () => listenForNews((_got, response) => void response.writeHead(503).end());

describe.each(BOTH_ENGINES)('what waits on %s', (engine) => {
  test('for one webhook is so much: the oldest is dropped', async () => {
    const { gateway, clock } = await openWorld(engine);
    const webhooks = gateway({ queueLimits: { perWebhookMax: 3 } });
    let up = false;
    const receiver = await listenForNews((_got, response) => void response.writeHead(up ? 200 : 503).end());
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('first'));
    await webhooks.run();
    for (let n = 0; n < 6; n += 1) await webhooks.deliver(KEY, event(`${n}`));
    up = true;
    clock.now += 60_000;
    await webhooks.run();
    expect(receiver.bodies()).toEqual(['first', '3', '4', '5']);
  });

  test('for one account is so much, by number and by bytes: no more is queued, and others’ is', async () => {
    const { gateway, lost } = await openWorld(engine);
    const webhooks = gateway({ queueLimits: { perAccountMax: 2, perAccountBytesMax: 1_000 } });
    const receiver = await down();
    const bob = { ...KEY, taskId: 'bobs' };
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.set(bob, { account: 'bob', within: null }, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    expect(await webhooks.deliver(KEY, event('two'))).toBe(1);
    expect(await webhooks.deliver(KEY, event('three'))).toBe(0);
    expect(lost).toMatchObject([
      { account: 'alice', receiver: null, reason: 'too much waits for the receivers of the account' },
    ]);
    expect(await webhooks.deliver(bob, event('b'.repeat(1_000)))).toBe(1);
    await webhooks.run();
    expect(await webhooks.deliver(bob, event('c'))).toBe(0);
  });

  test('for all is so much', async () => {
    const { gateway, lost, clock } = await openWorld(engine);
    const webhooks = gateway({ queueLimits: { max: 2 } });
    const receiver = await down();
    for (let n = 0; n < 4; n += 1) {
      const key = { ...KEY, taskId: `task-${n}` };
      await webhooks.set(key, { account: `account-${n}`, within: null }, hook(receiver.url));
      expect(await webhooks.deliver(key, event('one'))).toBe(n < 2 ? 1 : 0);
      await webhooks.run();
      clock.now += 3_000;
    }
    expect(lost.map(({ reason }) => reason)).toEqual(['too much waits for receivers', 'too much waits for receivers']);
  });

  test('for all wallets together that never had money is no more than what is left for others', async () => {
    const { gateway, lost } = await openWorld(engine);
    const webhooks = gateway({ queueLimits: { max: 10 } });
    const receiver = await down();
    const queuedFor = async (account: string) => {
      const key = { ...KEY, taskId: `task of ${account}` };
      await webhooks.set(key, { account, within: null }, hook(receiver.url));
      return webhooks.deliver(key, event('one'));
    };
    for (let n = 0; n < 8; n += 1) expect(await queuedFor(solanaWallet().account)).toBe(n < 5 ? 1 : 0);
    for (let n = 0; n < 5; n += 1) expect(await queuedFor(`account-${n}`)).toBe(1);
    expect(lost).toHaveLength(3);
  });

  test('is never larger than it may be', async () => {
    const { gateway, lost } = await openWorld(engine);
    const webhooks = gateway();
    const receiver = await listenForNews();
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    expect(await webhooks.deliver(KEY, event('x'.repeat(WEBHOOK_BODY_BYTES_MAX + 1)))).toBe(0);
    expect(await webhooks.deliver(KEY, event('x'.repeat(WEBHOOK_BODY_BYTES_MAX)))).toBe(1);
    await webhooks.run();
    expect(receiver.got).toHaveLength(1);
    expect(lost).toHaveLength(1);
  });

  test('leaves nothing behind for long: what was sent is no longer kept, and is known for a while', async () => {
    const { gateway, database } = await openWorld(engine);
    const webhooks = gateway();
    const receiver = await listenForNews();
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    for (let n = 0; n < 450; n += 1) await webhooks.deliver(KEY, event(`${n}`));
    await webhooks.run();
    await webhooks.deliver(KEY, event('last'));
    await webhooks.run();
    const [left] = await database.query(adHoc('SELECT count(*) AS known, count(body) AS kept FROM webhook_deliveries'));
    expect(left).toEqual({ known: 400n, kept: 0n });
    await webhooks.delete(KEY, ALICE, 'a');
    expect(await database.query(adHoc('SELECT 1 FROM webhook_deliveries'))).toEqual([]);
  });
});
