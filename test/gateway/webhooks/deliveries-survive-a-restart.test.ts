import { describe, expect, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { ALICE, event, hook, KEY, listenForNews, openWorld } from './webhook-world.ts';

const LEASE_MS = 60_000;

describe.each(ENGINES)('what waits on %s', (engine) => {
  test('is sent by the gateway that is started next', async () => {
    const { gateway, clock } = await openWorld(engine);
    const first = gateway();
    let up = false;
    const receiver = await listenForNews((_got, response) => void response.writeHead(up ? 200 : 503).end());
    await first.set(KEY, ALICE, hook(receiver.url, { headers: { 'x-token': 't' } }));
    for (const body of ['one', 'two']) await first.deliver(KEY, event(body));
    await first.run();
    await first.close();
    expect(receiver.bodies()).toEqual(['one']);

    up = true;
    const second = gateway();
    await second.run();
    expect(receiver.bodies()).toEqual(['one']);
    clock.now += 5_000;
    await second.run();
    expect(receiver.bodies()).toEqual(['one', 'one', 'two']);
    expect(receiver.got.at(-1)!.headers['x-token']).toBe('t');
    expect(await second.deliver(KEY, event('two'))).toBe(0);
  });

  test('is broken off when the gateway stops, and due at once for another', async () => {
    const { gateway } = await openWorld(engine);
    const first = gateway();
    let hang = true;
    const receiver = await listenForNews((_got, response) => void (hang || response.end()));
    await first.set(KEY, ALICE, hook(receiver.url));
    await first.deliver(KEY, event('one'));
    await receiver.until(1);
    await first.close();
    hang = false;
    await gateway().run();
    expect(receiver.bodies()).toEqual(['one', 'one']);
  });

  test('goes on after the gateway that had taken it died, when its time with it is over', async () => {
    const { gateway, clock } = await openWorld(engine);
    const dead = gateway();
    let hang = true;
    const receiver = await listenForNews((_got, response) => void (hang || response.end()));
    await dead.set(KEY, ALICE, hook(receiver.url));
    await dead.deliver(KEY, event('one'));
    await receiver.until(1);
    // It says nothing from here on: its call hangs.
    hang = false;
    const other = gateway();
    clock.now += LEASE_MS - 1;
    await other.run();
    expect(receiver.bodies()).toEqual(['one']);
    clock.now += 1;
    await other.deliver(KEY, event('two'));
    await other.run();
    expect(receiver.bodies()).toEqual(['one', 'one', 'two']);
  });
});
