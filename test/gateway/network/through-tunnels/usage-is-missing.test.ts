import { expect, test } from 'vitest';
import { earningsOf } from '#billing';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine } from '../../../support/tunnel-spine.ts';

// Replies through a tunnel that do not say what they used, or say it wrongly.

interface OwnServices {
  readonly services: readonly { readonly flags: object; readonly compliance: number; readonly last_hour: object }[];
}

const CLAIMS = [
  ['none', 'usage_missing'],
  ['null', 'usage_missing'],
  ['negative', 'usage_invalid'],
] as const;

test('nothing is earned, and the flag stands on the endpoints entry and on the provider’s own pages', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const upstream = await world.upstream();
  for (const [claim, flag] of CLAIMS) {
    const name = `${claim}/claims`;
    const proxy = await world.dialIn({
      services: offeredModel({ url: upstream.url, name, provider: `Claims ${claim}` }),
    });
    for (const stream of [false, true]) {
      const response = await spine.post(
        '/chat/completions',
        askTunnel(`hello !usage:${claim}`, { model: name, stream }),
      );
      expect(response.status).toBe(200);
      await response.text();
      expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
        state: 'settled',
        provider: proxy.id,
        cost_micro_usdc: 0,
        flags: [flag],
      });
    }
    expect((await spine.app.ledger.balance(earningsOf(proxy.id)))?.available ?? 0n).toBe(0n);
    const stands = (await world.endpoints(name))!;
    expect(stands).toMatchObject([{ provider_id: proxy.id, health: 'healthy', requests: 2, flags: { [flag]: 2 } }]);
    expect(stands[0]!.compliance).toBeLessThan(1);
    const { services } = await world.ownPage<OwnServices>('/services', proxy.wallet);
    expect(services).toMatchObject([
      { flags: { [flag]: 2 }, compliance: stands[0]!.compliance, last_hour: { requests: 2, failures: 0, flags: 2 } },
    ]);
    const { by_day: days } = await world.ownPage<{ readonly by_day: readonly { services: object[] }[] }>(
      '/earnings',
      proxy.wallet,
    );
    expect(days.at(-1)!.services).toMatchObject([{ requests: 2, earned_micro_usdc: 0, flags: { [flag]: 2 } }]);
  }
  expect((await spine.balance()).available).toBe(100_000_000n);
  // Who is in order earns, and has no flags.
  const careful = await world.supply('Careful');
  await (await spine.post('/chat/completions', askTunnel('!tokens:5'))).text();
  expect((await spine.app.ledger.balance(earningsOf(careful.proxy.id)))?.available).toBe(
    BigInt(careful.upstream.log[0]!.promptTokens + 10),
  );
  expect(await world.endpoints()).toMatchObject([{ flags: {}, compliance: 1 }]);
});
