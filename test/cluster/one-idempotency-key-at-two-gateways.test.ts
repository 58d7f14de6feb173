import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { startCluster, until, type Cluster } from '../support/cluster.ts';
import { ask, UNHURRIED, type Spine } from '../support/spine.ts';

// A client that sends one request to both gateways, because it takes the first for dead, is charged once and gets one
// answer, whichever gateway it asks.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 5;
const CROWD = 12;

let cluster: Cluster<Spine>;
let gateways: readonly [Spine, Spine];
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml: UNHURRIED });
  gateways = cluster.gateways as unknown as [Spine, Spine];
});
afterAll(() => cluster?.stop());
afterEach(async () => {
  cluster.provider.hold(null);
  expect(await gateways[0].faults()).toEqual([]);
});

let counter = 0;
/** A key, and an account that was never called for before. */
async function newClient() {
  const name = `client-${(counter += 1)}`;
  const { key, account } = await gateways[0].tenant(name, '1');
  const send = async (gateway: Spine, body: object) => {
    const response = await gateway.post('/chat/completions', body, {
      authorization: `Bearer ${key}`,
      'idempotency-key': name,
    });
    return {
      status: response.status,
      id: response.headers.get('x-generation-id'),
      isRepeat: response.headers.get('idempotent-replayed') === 'true',
      text: await response.text(),
    };
  };
  const paid = async () => {
    await gateways[0].quiet();
    return 1_000_000n - (await gateways[1].app.ledger.balance(`escrow:${account}`))!.available;
  };
  return { send, paid };
}

/** What the only call that the provider was asked for since then costs. */
function priceSince(seen: number): bigint {
  const { log } = cluster.provider;
  expect(log.length).toBe(seen + 1);
  const { promptTokens, completionTokens } = log.at(-1)!;
  return BigInt(promptTokens + 2 * completionTokens);
}

describe.each([false, true])('one request to both gateways at once, stream: %s', (stream) => {
  test('runs once while the others are told to wait, and all get its answer', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { send, paid } = await newClient();
      const seen = cluster.provider.log.length;
      const gate = Promise.withResolvers<void>();
      cluster.provider.hold(gate.promise);
      const body = ask('hello !tokens:5', { stream });
      let refused = 0;
      const crowd = Array.from({ length: CROWD }, async (_, index) => {
        const answer = await send(gateways[index % 2]!, body);
        if (answer.status === 409) refused += 1;
        return answer;
      });
      await until(() => refused === CROWD - 1, 'all but one are told to wait').finally(gate.resolve);
      const answers = await Promise.all(crowd);
      cluster.provider.hold(null);
      const [first] = answers.filter(({ status }) => status === 200);
      expect(first).toMatchObject({ isRepeat: false });
      for (const gateway of gateways) expect(await send(gateway, body)).toEqual({ ...first, isRepeat: true });
      expect(await paid()).toBe(priceSince(seen));
    }
  });

  test('runs again where the first run failed, once for all that try', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { send, paid } = await newClient();
      const refusing = ask('hello !status:400', { stream });
      for (const gateway of gateways) expect(await send(gateway, refusing)).toMatchObject({ status: 400 });
      const seen = cluster.provider.log.length;
      const body = ask('hello !tokens:5', { stream });
      const untilAnswered = async (gateway: Spine) => {
        let answer = await send(gateway, body);
        await until(
          async () => answer.status !== 409 || (answer = await send(gateway, body)).status !== 409,
          'it is answered',
        );
        return answer;
      };
      const answers = await Promise.all(
        Array.from({ length: CROWD }, (_, index) => untilAnswered(gateways[index % 2]!)),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(CROWD).fill(200));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(answers.filter(({ isRepeat }) => !isRepeat)).toHaveLength(1);
      expect(await paid()).toBe(priceSince(seen));
    }
  });

  test('with two bodies runs one of them', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { send, paid } = await newClient();
      const seen = cluster.provider.log.length;
      const answers = await Promise.all(
        gateways.map((gateway, index) => send(gateway, ask(`hello ${index} !tokens:5`, { stream }))),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
      expect(await paid()).toBe(priceSince(seen));
    }
  });
});
