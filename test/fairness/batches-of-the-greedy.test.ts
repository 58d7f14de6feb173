import { afterEach, expect, inject, test } from 'vitest';
import { begin, chatLine, clientAt, ended, until } from '../openai/batches/support/batch-client.ts';
import { BOTH_ENGINES, type EngineName } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startGatewayHere, type GatewayHere } from '../support/gateway-here.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';

// Some accounts have many batches of a model that does not answer. One more account has a batch of a model that does.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface World {
  readonly gateways: readonly GatewayHere[];
  /** Its calls end when the test does, or with `answer`. */
  readonly slow: TestProvider;
  answer(): void;
  clientOf(account: string): Promise<ReturnType<typeof clientAt>>;
}

async function open(engine: EngineName, batches: string): Promise<World> {
  const [slow, fast] = [await startProvider(), await startProvider()];
  const gate = Promise.withResolvers<void>();
  slow.hold(gate.promise);
  closing.push(
    () => slow.stop(),
    () => fast.stop(),
  );
  const answer = () => {
    gate.resolve();
    slow.hold(null);
  };
  const toml =
    `${UNHURRIED}[batches]\n${batches}\n` +
    modelBlock({ name: 'acme/slow', provider: 'Slow', url: slow.url }) +
    modelBlock({ name: 'acme/free', provider: 'Slow', url: slow.url, prompt: 0, completion: 0 }) +
    modelBlock({ name: 'acme/fast', provider: 'Fast', url: fast.url });
  const env = { TEST_UPSTREAM_KEY: 'upstream-secret-canary', TOLLGATE_IDENTITY_SEED: 'ab'.repeat(32) };
  const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  if (database !== null) closing.push(() => database.drop());
  const gateways: GatewayHere[] = [];
  for (let count = engine === 'postgres' ? 2 : 1; count > 0; count -= 1)
    gateways.push(await startGatewayHere({ toml, env, ...(database === null ? {} : { databaseUrl: database.url }) }));
  closing.push(async () => {
    expect(await gateways[0]!.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
    answer();
    for (const gateway of gateways) await gateway.stop();
  });
  return {
    gateways,
    slow,
    answer,
    async clientOf(account) {
      const { key } = await gateways[0]!.openAccount(account, 1);
      return clientAt(`${gateways.at(-1)!.baseUrl}/v1`, key);
    },
  };
}

const lines = (model: string, count: number) =>
  Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, 'ping !tokens:5', { model }));

test.each(BOTH_ENGINES)(
  'a batch of one account ends while those of two others hold all that they get: %s',
  async (engine) => {
    const { slow, gateways, clientOf } = await open(engine, 'lines_at_once = 8\naccount_lines_at_once = 4');
    for (const account of ['eve', 'mallory']) {
      const client = await clientOf(account);
      for (let batch = 0; batch < 20; batch += 1) await begin(client, lines('acme/slow', 3));
    }
    // At one gateway, the first gets four places, the second two.
    const most = 6 * gateways.length;
    await until(() => slow.log.length >= most - 1);
    const patient = await clientOf('bob');
    const { id } = await begin(patient, lines('acme/fast', 3));
    expect(await ended(patient, id)).toMatchObject({ status: 'completed', request_counts: { completed: 3 } });
    expect(slow.log.length).toBeLessThanOrEqual(most);
  },
);

test('a batch is checked, and gets a place, while the batches of other accounts have all places', async () => {
  const { slow, answer, clientOf } = await open('sqlite', 'lines_at_once = 1\naccount_lines_at_once = 1');
  // One place for a line, four for batches.
  const greedy = await Promise.all(
    ['a', 'b', 'c', 'd', 'e'].map(async (account) => {
      const client = await clientOf(account);
      return { client, id: (await begin(client, lines('acme/slow', 2))).id };
    }),
  );
  await until(() => slow.log.length === 1);
  const patient = await clientOf('bob');
  const faulty = await begin(patient, [{ ...chatLine('a', 'ping'), url: '/v1/none' }]);
  expect(await ended(patient, faulty.id)).toMatchObject({ status: 'failed' });
  const { id } = await begin(patient, lines('acme/fast', 1));
  await until(async () => (await patient.batches.retrieve(id)).status === 'in_progress');
  await patient.batches.cancel(id);
  // A batch that waits for the place of a line makes way, and this one ends.
  expect(await ended(patient, id)).toMatchObject({ status: 'cancelled' });
  expect(slow.log.length).toBe(1);
  // Those that made way go on, and leave no line out.
  answer();
  for (const { client, id: begun } of greedy)
    expect(await ended(client, begun)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 2, failed: 0 },
    });
});

test('batches of free models have together the lines of one account', async () => {
  const { slow, clientOf } = await open('sqlite', 'lines_at_once = 8\naccount_lines_at_once = 4');
  for (const account of ['a', 'b', 'c', 'd', 'e', 'f']) await begin(await clientOf(account), lines('acme/free', 3));
  await until(() => slow.log.length >= 4);
  const patient = await clientOf('bob');
  const { id } = await begin(patient, lines('acme/fast', 2));
  expect(await ended(patient, id)).toMatchObject({ status: 'completed' });
  expect(slow.log.length).toBe(4);
});
