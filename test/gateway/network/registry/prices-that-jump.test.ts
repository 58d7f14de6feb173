import { describe, expect, test } from 'vitest';
import type { Service } from '../../../../src/server/config/service.ts';
import { RegistrationError } from '../../../../src/gateway/network/registry/document.ts';
import { BOTH_ENGINES, openTestDatabase } from '../../test-database.ts';
import { joined, model, startNode, until } from './registry-world.ts';

const MINUTE = 60_000;
const usd = (price: number) => model('a/b', { price });

describe.each(BOTH_ENGINES)('%s', (engine) => {
  const start = async () => {
    let time = 1_000;
    const database = await openTestDatabase(engine);
    const world = async () => startNode(database, { now: () => time, priceNoticeMs: 10 * MINUTE });
    const node = await world();
    const connection = await joined(node, 'p');
    const raised = (of = node) => {
      const found = of.catalog.offers().find(({ service }) => service === 'a/b')?.raised;
      return found ? { was: Number(found.was.price.rates.prompt) / 1e6, until: found.until } : null;
    };
    return {
      node,
      world,
      raised,
      register: (...services: Service[]) => node.registry.register(connection, services),
      pass: (ms: number) => void (time += ms),
      time: () => time,
    };
  };

  test('a jump is held against the price before it; twice is none', async () => {
    const { register, raised, time } = await start();
    await register(usd(1));
    expect(raised()).toBeNull();
    await register(usd(2));
    expect(raised()).toBeNull();
    await register(usd(1_000));
    expect(raised()).toEqual({ was: 1, until: time() + 10 * MINUTE });
    await register(usd(1.5));
    expect(raised()).toBeNull();
  });

  test('a raise in many steps is one, and a price that was low for a moment counts', async () => {
    const { register, raised, pass, time } = await start();
    await register(usd(1));
    for (let price = 2; price <= 64; price *= 2) {
      await register(usd(price));
      pass(MINUTE);
    }
    expect(raised()).toEqual({ was: 1, until: time() + 9 * MINUTE });
    pass(10 * MINUTE);
    await register(usd(32));
    await register(usd(64));
    expect(raised()).toBeNull();
    await register(usd(8));
    await register(usd(64));
    expect(raised()).toMatchObject({ was: 8 });
  });

  test('a service that is taken back for a while comes back with its notice', async () => {
    const { register, raised, pass } = await start();
    await register(usd(1));
    await register(model('other'));
    pass(60 * MINUTE);
    await register(model('other'), usd(1_000));
    expect(raised()).toMatchObject({ was: 1 });
    await register(model('other'));
    await register(model('other'), usd(1_000));
    expect(raised()).toMatchObject({ was: 1 });
  });

  test('no more is taken back than is remembered', async () => {
    const { register } = await start();
    const many = (name: string): Service => ({
      primitive: 'tool',
      name,
      displayName: name,
      providerName: 'Acme',
      description: '',
      rates: { call: 1n },
      variants: Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`t${index}`, { call: 1n }])),
      priceCap: null,
    });
    await register(many('one'));
    await register(many('two'));
    await register(many('three'));
    await expect(register(many('four'))).rejects.toThrow(RegistrationError);
    await register(many('one'), many('three'));
  });

  test('the notice outlives the gateway and is the same at every other', async () => {
    const { register, raised, world, node } = await start();
    await register(usd(1));
    await register(usd(1_000));
    const before = raised();
    expect(before).toMatchObject({ was: 1 });
    if (engine === 'sqlite') await node.registry.close();
    const other = await world();
    await until(() => raised(other) !== null);
    expect(raised(other)).toEqual(before);
    expect((await other.registry.registration('p'))?.services[0]?.raised?.until).toBe(before?.until);
  });
});
