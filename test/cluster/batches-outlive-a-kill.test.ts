import { afterEach, describe, expect, inject, test } from 'vitest';
import { begin, chatLine, clientAt, ended, resultsOf, type OwnBatch } from '../openai/batches/support/batch-client.ts';
import { startBatchProvider, type BatchProvider } from '../support/batch-provider.ts';
import { until } from '../support/cluster.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { IDENTITY_SEED, modelBlock, UNHURRIED } from '../support/spine.ts';

// Gateways in processes of their own, killed while they work on a batch.

/** 11 prompt tokens and 5 completion tokens at 1 and 2 USD per 1M: 21 micro-USD. */
const PING = 'ping !tokens:5';
const COST = 21;
const FUNDS = 1_000_000;
const TOML = `${UNHURRIED}[batches]\naccount_lines_at_once = 4\n`;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function start(provider: TestProvider, databaseUrl?: string): Promise<Gateway> {
  const gateway = await startGateway({
    toml: TOML + modelBlock({ provider: 'Test', url: provider.url }),
    env: { TOLLGATE_IDENTITY_SEED: IDENTITY_SEED, TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  closing.push(() => gateway.stop());
  return gateway;
}

async function openProvider(): Promise<TestProvider> {
  const provider = await startProvider();
  closing.push(() => provider.stop());
  return provider;
}

const clientOf = (gateway: Gateway, key: string) => clientAt(`${gateway.baseUrl}/v1`, key);
const linesOf = (count: number) => Array.from({ length: count }, (_, at) => chatLine(`line-${at}`, PING));
const namesOf = (count: number) => linesOf(count).map((line) => line.custom_id);

/** Every line is answered and charged once, and the books are in order. */
async function expectOnce(gateway: Gateway, key: string, batch: OwnBatch, count: number): Promise<void> {
  const client = clientOf(gateway, key);
  const { output } = await resultsOf(client, batch);
  expect(output.map((line) => line.custom_id).toSorted()).toEqual(namesOf(count).toSorted());
  const headers = { authorization: `Bearer ${key}` };
  const balance: unknown = await (await fetch(`${gateway.baseUrl}/api/v1/session/balance`, { headers })).json();
  expect(balance).toMatchObject({ balance_micro_usdc: FUNDS - count * COST, locked_micro_usdc: 0 });
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
}

describe('a gateway that is killed in a batch', () => {
  test('goes on with it when it starts again, as often as it is killed', async () => {
    const provider = await openProvider();
    const gateway = await start(provider);
    const { key } = await gateway.openAccount('caller', FUNDS / 1e6);
    const count = 60;
    const { id } = await begin(clientOf(gateway, key), linesOf(count));
    for (const asked of [10, 30, 50]) {
      await until(() => provider.log.length >= asked, `${asked} lines are called`);
      await gateway.kill9();
      await gateway.restart();
    }
    const batch = await ended(clientOf(gateway, key), id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: count } });
    await expectOnce(gateway, key, batch, count);
  });

  test('leaves it to another gateway of its database', async () => {
    const provider = await openProvider();
    const database = await freshDatabase(inject('postgresUrl'));
    closing.push(() => database.drop());
    const first = await start(provider, database.url);
    const { key } = await first.openAccount('caller', FUNDS / 1e6);
    const gate = Promise.withResolvers<void>();
    const count = 60;
    const { id } = await begin(clientOf(first, key), linesOf(count));
    await until(() => provider.log.length >= 20, 'lines are called');
    // Some of them are running when it is killed.
    provider.hold(gate.promise);
    const second = await start(provider, database.url);
    const client = clientOf(second, key);
    expect(await client.batches.retrieve(id)).toMatchObject({ status: 'in_progress' });
    await first.kill9();
    provider.hold(null);
    gate.resolve();
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: count } });
    await expectOnce(second, key, batch, count);
  });
});

describe('a gateway that is killed while a provider has its lines', () => {
  const LOT = 'lot/model';
  /** 11 prompt tokens and 5 completion tokens at 0.5 and 1 USD per 1M: 10.5 micro-USD, rounded up. */
  const HALF = 11;
  const lotLines = (count: number) => linesOf(count).map((line) => ({ ...line, body: { ...line.body, model: LOT } }));

  async function startLot(provider: BatchProvider, databaseUrl?: string): Promise<Gateway> {
    const block = modelBlock({
      name: LOT,
      provider: 'Lot',
      url: provider.url,
      pricing: 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }',
      params: 'batches = true',
    });
    const gateway = await startGateway({
      toml: `${TOML}provider_look_ms = 100\n${block}`,
      env: { TOLLGATE_IDENTITY_SEED: IDENTITY_SEED, TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
      ...(databaseUrl === undefined ? {} : { databaseUrl }),
    });
    closing.push(() => gateway.stop());
    return gateway;
  }

  async function expectHalf(gateway: Gateway, key: string, batch: OwnBatch, count: number): Promise<void> {
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: count, completed: count, failed: 0 } });
    const { output } = await resultsOf(clientOf(gateway, key), batch);
    expect(output.map((line) => line.custom_id)).toEqual(namesOf(count));
    const headers = { authorization: `Bearer ${key}` };
    const balance: unknown = await (await fetch(`${gateway.baseUrl}/api/v1/session/balance`, { headers })).json();
    expect(balance).toMatchObject({ balance_micro_usdc: FUNDS - count * HALF, locked_micro_usdc: 0 });
    expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
  }

  test('finds the batch that it had just created, and settles it after its restart', async () => {
    const provider = await startBatchProvider();
    closing.push(() => provider.stop());
    const gateway = await startLot(provider);
    const { key } = await gateway.openAccount('caller', FUNDS / 1e6);
    const isCreated = Promise.withResolvers<void>();
    // It is killed before it has the answer.
    provider.after = (method, path) => {
      if (method !== 'POST' || path !== '/batches') return undefined;
      isCreated.resolve();
      return 'silence';
    };
    const { id } = await begin(clientOf(gateway, key), lotLines(20));
    await isCreated.promise;
    await gateway.kill9();
    provider.isEager = true;
    await gateway.restart();
    await expectHalf(gateway, key, await ended(clientOf(gateway, key), id), 20);
    expect(provider.batches).toHaveLength(1);
    expect(provider.log.filter((each) => each === 'POST /batches')).toHaveLength(1);
  });

  test('leaves it to another gateway of its database', async () => {
    const provider = await startBatchProvider();
    closing.push(() => provider.stop());
    const database = await freshDatabase(inject('postgresUrl'));
    closing.push(() => database.drop());
    const first = await startLot(provider, database.url);
    const { key } = await first.openAccount('caller', FUNDS / 1e6);
    const { id } = await begin(clientOf(first, key), lotLines(20));
    await until(() => provider.batches.length > 0, 'the provider has the lines');
    const second = await startLot(provider, database.url);
    await first.kill9();
    provider.end(provider.batches[0]!, 'completed');
    await expectHalf(second, key, await ended(clientOf(second, key), id), 20);
    expect(provider.batches).toHaveLength(1);
  });
});

test('a gateway that stops lets its lines end, and another goes on', async () => {
  const provider = await openProvider();
  const database = await freshDatabase(inject('postgresUrl'));
  closing.push(() => database.drop());
  const first = await start(provider, database.url);
  const { key } = await first.openAccount('caller', FUNDS / 1e6);
  const count = 40;
  const { id } = await begin(clientOf(first, key), linesOf(count));
  await until(() => provider.log.length >= 10, 'lines are called');
  expect(await first.term()).toBe(0);
  const second = await start(provider, database.url);
  const batch = await ended(clientOf(second, key), id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: count, completed: count, failed: 0 } });
  expect(provider.log).toHaveLength(count);
  await expectOnce(second, key, batch, count);
});
