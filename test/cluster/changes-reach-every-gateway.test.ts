import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { endpointsOf, reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel } from '../support/dial-in.ts';
import type { Spine } from '../support/spine.ts';
import { evmWallet, solanaWallet, type TestWallet } from '../support/wallets.ts';

// What a provider does at one gateway, all gateways know within a second: it can be called, at its new price, or
// not any more.

const WITHIN_MS = 1_000;
const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 4;

let cluster: Cluster<Spine>;
let origins: readonly string[];
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl') });
  origins = cluster.gateways.map(({ origin }) => origin);
});
afterAll(() => cluster?.stop());

const figures: Record<string, number[]> = {};
function expectSoon(what: string, ms: number): void {
  (figures[what] ??= []).push(ms);
  expect(ms, what).toBeLessThan(atThisLoad(WITHIN_MS));
}

const offer = (round: number, prompt: number) =>
  offeredModel({ url: cluster.provider.url, name: `m${round}/model`, provider: `Provider${round}`, prompt });

const dial = (round: number, at: number, wallet: TestWallet, prompt: number) =>
  dialIn({ router: origins[at % origins.length]!, wallet, services: offer(round, prompt) });

/** A call at each gateway by the provider's key; what each cost. */
async function callEverywhere(id: string, round: number): Promise<readonly number[]> {
  return Promise.all(
    cluster.gateways.map(async (gateway) => {
      const body = {
        model: `${id}:m${round}/model`,
        messages: [{ role: 'user', content: 'hello !tokens:3' }],
        max_tokens: 10,
        max_cost: 1,
      };
      const response = await gateway.post('/chat/completions', body);
      const reply = (await response.json()) as { usage: { cost: number } };
      expect(response.status, JSON.stringify(reply)).toBe(200);
      return Math.round(reply.usage.cost * 1e6);
    }),
  );
}

test.each(Array.from({ length: ROUNDS }, (_, round) => round))('round %i', async (round) => {
  const wallet = round % 2 === 0 ? solanaWallet() : evmWallet();
  const name = `m${round}/model`;
  const prices = async (origin: string) =>
    (await endpointsOf(origin, name)).map(({ pricing }) => Number(pricing.prompt) * 1e6);
  const statuses = async (origin: string) => (await endpointsOf(origin, name)).map(({ health }) => health);
  const everywhere = async (is: (origin: string) => Promise<boolean>) =>
    (await Promise.all(origins.map(is))).every(Boolean);

  // From the moment that its proxy is told that it is registered.
  const first = await dial(round, round, wallet, 1);
  expectSoon('registered', await reachable(origins, name));
  const cheap = await callEverywhere(first.id, round);
  const tokens = cluster.provider.log.at(-1)!.promptTokens;
  expect(cheap).toEqual(Array(3).fill(tokens + 6));

  // The newest connection is at another gateway.
  const second = await dial(round, round + 1, wallet, 7);
  expectSoon(
    'new price',
    await until(() => everywhere(async (origin) => String(await prices(origin)) === '7'), 'all have the new price'),
  );
  expect(await callEverywhere(second.id, round)).toEqual(Array(3).fill(7 * tokens + 6));
  expect(await second.reload(offer(round, 9))).toMatchObject({ kind: 'registered' });
  expectSoon(
    'reloaded price',
    await until(
      () => everywhere(async (origin) => String(await prices(origin)) === '9'),
      'all have the reloaded price',
    ),
  );
  expect(await callEverywhere(second.id, round)).toEqual(Array(3).fill(9 * tokens + 6));
  expect(await first.closed).toBe(3);
  // What ended is not taken for the end of what took its place.
  expect(await everywhere(async (origin) => /^(?:healthy|untried)$/.test(String(await statuses(origin))))).toBe(true);

  if (round % 2 === 0) second.kill();
  else await second.close();
  expectSoon(
    'gone',
    await until(
      () => everywhere(async (origin) => String(await statuses(origin)) === 'away'),
      'all know that it has gone',
    ),
  );
});

test('twenty providers at once, spread over the gateways', async () => {
  const numbers = Array.from({ length: 20 }, (_, index) => 100 + index);
  const all = await Promise.all(numbers.map((number) => dial(number, number, solanaWallet(), 1)));
  const listed = async (origin: string) => {
    const { data } = (await (await fetch(`${origin}/api/v1/models`)).json()) as { data: readonly { id: string }[] };
    return numbers.every((number) => data.some(({ id }) => id === `m${number}/model`));
  };
  expectSoon(
    'twenty registered',
    await until(async () => (await Promise.all(origins.map(listed))).every(Boolean), 'all list twenty more'),
  );
  await Promise.all(all.map(({ id }, index) => callEverywhere(id, numbers[index]!)));
  await Promise.all(all.map((proxy) => proxy.close()));
  expect(await cluster.gateways[0]!.faults()).toEqual([]);
});

afterAll(() => {
  for (const [what, all] of Object.entries(figures)) console.log(`  ${what}: ${all.map(Math.round).join(', ')} ms`);
});
