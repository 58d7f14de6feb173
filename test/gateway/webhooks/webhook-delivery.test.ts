import { describe, expect, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { ALICE, event, hook, KEY, listenForNews, openWorld } from './webhook-world.ts';

describe.each(ENGINES)('a delivery on %s', (engine) => {
  test('comes with its content type and the headers that the client asked for', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    const receiver = await listenForNews();
    await webhooks.set(
      KEY,
      ALICE,
      hook(`${receiver.url}?a=1`, { headers: { authorization: 'Bearer b', 'x-token': 't' } }),
    );
    expect(await webhooks.deliver(KEY, event('{"n":1}'))).toBe(1);
    await webhooks.run();
    expect(receiver.got).toHaveLength(1);
    expect(receiver.got[0]).toMatchObject({
      path: '/news?a=1',
      body: '{"n":1}',
      headers: { 'content-type': 'application/json', authorization: 'Bearer b', 'x-token': 't', 'content-length': '7' },
    });
  });

  test('is made in the form of each receiver, and not where there is none for it', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    const receivers = await Promise.all([listenForNews(), listenForNews(), listenForNews()]);
    for (const [index, form] of ['x', 'y', 'z'].entries())
      await webhooks.set(KEY, ALICE, hook(receivers[index]!.url, { name: form, form }));
    const told = await webhooks.deliver(KEY, {
      identity: 'one',
      contentOf: (form) => (form === 'z' ? null : { contentType: `text/${form}`, body: form }),
    });
    await webhooks.run();
    expect(told).toBe(2);
    expect(receivers.map(({ got }) => got.map(({ body, headers }) => [body, headers['content-type']]))).toEqual([
      [['x', 'text/x']],
      [['y', 'text/y']],
      [],
    ]);
  });

  test('is for the receivers of its task alone', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    const receiver = await listenForNews();
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    expect(await webhooks.deliver({ ...KEY, taskId: 'task-2' }, event('no'))).toBe(0);
    expect(await webhooks.deliver({ ...KEY, service: 'other' }, event('no'))).toBe(0);
    await webhooks.run();
    expect(receiver.got).toEqual([]);
  });

  test('happens once, however often and by however many gateways the same is seen', async () => {
    const { gateway, again } = await openWorld(engine);
    const webhooks = gateway();
    const others =
      engine === 'postgres'
        ? [gateway({ database: await again() }), gateway({ database: await again() })]
        : [gateway(), gateway()];
    const receiver = await listenForNews();
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    // Whoever is late queues what another gateway is just done with: the two must not wait for each other in the
    // database.
    const rounds = Array.from({ length: 25 }, (_, round) => `${round}`);
    for (const round of rounds) {
      await Promise.all([webhooks, ...others].map((one) => one.deliver(KEY, event(round))));
      await Promise.all([webhooks, ...others].map((one) => one.run()));
    }
    expect(receiver.bodies()).toEqual(rounds);
    for (const round of rounds) expect(await others[0]!.deliver(KEY, event(round))).toBe(0);
    // What is never the same may look the same.
    for (let n = 0; n < 2; n += 1) await webhooks.deliver(KEY, event('4', null));
    await webhooks.run();
    expect(receiver.bodies()).toEqual([...rounds, '4', '4']);
  });

  test('comes after the one before, whoever queues and whoever sends', async () => {
    const { gateway, again } = await openWorld(engine);
    const webhooks = [gateway(), gateway(engine === 'postgres' ? { database: await again() } : {})];
    let inFlight = 0;
    const receiver = await listenForNews((_got, response) => {
      inFlight += 1;
      expect(inFlight).toBe(1);
      setImmediate(() => {
        inFlight -= 1;
        response.end();
      });
    });
    await webhooks[0]!.set(KEY, ALICE, hook(receiver.url));
    const expected = Array.from({ length: 40 }, (_, n) => `${n}`);
    for (const [n, body] of expected.entries()) await webhooks[n % 2]!.deliver(KEY, event(body));
    while (receiver.got.length < expected.length) await Promise.all(webhooks.map((one) => one.run()));
    expect(receiver.bodies()).toEqual(expected);
  });

  test('does not happen after its webhook was deleted', async () => {
    const { gateway, clock } = await openWorld(engine);
    const webhooks = gateway();
    const receiver = await listenForNews((_got, response) => void response.writeHead(503).end());
    await webhooks.set(KEY, ALICE, hook(receiver.url));
    await webhooks.deliver(KEY, event('one'));
    await webhooks.run();
    await webhooks.delete(KEY, ALICE, 'a');
    clock.now += 3_600_000;
    await webhooks.run();
    expect(receiver.got).toHaveLength(1);
  });
});
