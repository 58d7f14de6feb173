import { describe, expect, test } from 'vitest';
import { seeded } from '../../call/routing/offers.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, listed, model, startNode, until } from './registry-world.ts';
import type { ProxyConnection } from '../../../../src/gateway/network/registry/presence.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

const PROVIDERS = 200;
const FLAPPING_MS = process.env['TOLLGATE_DEEP'] === '1' ? 60_000 : 3_000;

describe.each(ENGINES)('%s: 200 providers that come and go', (engine) => {
  test('end in what is true, on every gateway, without an offer too many', async () => {
    const database = await openTestDatabase(engine);
    const gateways = engine === 'postgres' ? 3 : 1;
    const nodes = await Promise.all(Array.from({ length: gateways }, () => startNode(database, { graceMs: 300 })));
    const random = seeded(7);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
    const pause = () => new Promise((resolve) => setTimeout(resolve, random() * 400));
    const ends = performance.now() + FLAPPING_MS;
    let changes = 0;

    /**
     * Connects, registers, moves to another gateway with or without saying good-bye, stays away: until the time is
     * over. Returns where it ended.
     */
    const flap = async (
      provider: string,
    ): Promise<{ readonly at: number; readonly connection: ProxyConnection } | null> => {
      let here: { at: number; connection: ProxyConnection } | null = null;
      const services = () =>
        Array.from({ length: 1 + Math.floor(random() * 3) }, (_, index) =>
          model(`${provider}/${index}`, { providerName: provider }),
        );
      for (;;) {
        const over = performance.now() > ends;
        const next = random();
        if (here && next < 0.5) {
          await nodes[here.at]!.registry.leave(here.connection);
          here = null;
        } else {
          const before = here;
          const joining: { at: number; connection: ProxyConnection } = {
            at: pick(nodes.map((_, index) => index)),
            connection: connectionOf(provider),
          };
          await nodes[joining.at]!.registry.join(joining.connection);
          here = joining;
          await nodes[here.at]!.registry.register(here.connection, services());
          // The old one ends late.
          if (before) await nodes[before.at]!.registry.leave(before.connection);
        }
        changes += 1;
        if (over) return here;
        await pause();
      }
    };

    const providers = Array.from({ length: PROVIDERS }, (_, index) => `p${index}`);
    const truth = await Promise.all(providers.map(flap));
    const agree = () =>
      nodes.every(({ registry }, index) =>
        providers.every((provider, which) => {
          const location = registry.locate(provider);
          const real = truth[which];
          if (!real) return location === null;
          return location?.connection === real.connection.id && (location.kind === 'here') === (real.at === index);
        }),
      );
    // From the last change to the same state everywhere.
    expect(await until(agree)).toBeLessThan(atThisLoad(1_000));

    const registrations = await Promise.all(providers.map((provider) => nodes[0]!.registry.registration(provider)));
    const offers = registrations.flatMap((registration, which) =>
      truth[which] ? registration!.services.map(({ service }) => `${providers[which]}:${service.name}`) : [],
    );
    await until(() => nodes.every((node) => listed(node).join() === offers.toSorted().join()));
    for (const node of nodes) {
      expect(node.errors).toEqual([]);
      expect(new Set(node.superseded).size).toBe(node.superseded.length);
    }
    expect(changes).toBeGreaterThan(PROVIDERS * 2);
  });
});
