import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { escrowOf } from '#billing';
import { begin, chatLine, clientAt, ended, resultsOf } from '../openai/batches/support/batch-client.ts';
import { startCluster, until, type Cluster } from '../support/cluster.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';

// Two gateways work on batches of one account, and its client polls and cancels at both.

/** Cancellations that wait for the row of their batch. */
const WAITING = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%cancelling_at = $3%'`;
/** 11 prompt tokens and 5 completion tokens at 1 and 2 USD per 1M: 21 micro-USD. */
const PING = 'ping !tokens:5';
const COST = 21n;
const FUNDS = 10_000_000n;
const [BATCHES, LINES] = process.env['TOLLGATE_DEEP'] === '1' ? [12, 100] : [4, 12];

let cluster: Cluster<Spine>;
let gateways: readonly [Spine, Spine];
beforeAll(async () => {
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `${UNHURRIED}[batches]\naccount_lines_at_once = 4\n`,
  });
  gateways = cluster.gateways as unknown as [Spine, Spine];
});
afterAll(() => cluster?.stop());
afterEach(async () => {
  cluster.provider.hold(null);
  cluster.provider.log.length = 0;
  expect(await gateways[0].faults()).toEqual([]);
});

async function newClient(name: string) {
  const { account, key } = await gateways[0].tenant(name, '10');
  const clients = gateways.map(({ origin }) => clientAt(`${origin}/v1`, key));
  const balance = async () => gateways[1].app.ledger.balance(escrowOf(account));
  return { clients: clients as [(typeof clients)[0], (typeof clients)[0]], balance };
}

const lines = Array.from({ length: LINES }, (_, at) => chatLine(`line-${at}`, PING));

test('each line is called and charged once, and both gateways show the same end', async () => {
  const { clients, balance } = await newClient('polling');
  const created = await Promise.all(Array.from({ length: BATCHES }, (_, index) => begin(clients[index % 2]!, lines)));
  for (const { id } of created) {
    const [first, second] = await Promise.all(clients.map((client) => ended(client, id)));
    expect(first).toEqual(second);
    expect(first).toMatchObject({ status: 'completed', request_counts: { total: LINES, completed: LINES, failed: 0 } });
    const [results, others] = await Promise.all(clients.map((client) => resultsOf(client, first!)));
    expect(results).toEqual(others);
    expect(results!.output.map((line) => line.custom_id)).toEqual(lines.map((line) => line.custom_id));
  }
  expect(cluster.provider.log).toHaveLength(BATCHES * LINES);
  await gateways[0].quiet();
  expect(await balance()).toEqual({ available: FUNDS - BigInt(BATCHES * LINES) * COST, locked: 0n });
});

/** Cancels at both so that each has found the batch before either changes it. */
async function cancelAtBoth({ clients }: Awaited<ReturnType<typeof newClient>>, id: string) {
  const row = new Client({ connectionString: cluster.databaseUrl });
  await row.connect();
  try {
    await row.query('BEGIN');
    await row.query('SELECT id FROM batches WHERE id = $1 FOR UPDATE', [id]);
    const cancelled = Promise.all(clients.map((client) => client.batches.cancel(id)));
    // The statistics of a transaction are those of its first look.
    await until(async () => {
      await row.query('SELECT pg_stat_clear_snapshot()');
      return (await row.query<{ count: number }>(WAITING)).rows[0]!.count === 2;
    }, 'both wait for its row');
    await row.query('COMMIT');
    return await cancelled;
  } finally {
    await row.end();
  }
}

test('a batch that is cancelled at both at once while its lines run charges what ran, and gives back the rest', async () => {
  const client = await newClient('cancelling');
  const { clients, balance } = client;
  const gate = Promise.withResolvers<void>();
  cluster.provider.hold(gate.promise);
  const { id } = await begin(clients[0], lines);
  try {
    await until(() => cluster.provider.log.length > 0, 'lines run');
    for (const { status } of await cancelAtBoth(client, id)) expect(['cancelling', 'cancelled']).toContain(status);
  } finally {
    // What is held would keep its lock, and hide the failure behind that of the books.
    gate.resolve();
  }
  const [first, second] = await Promise.all(clients.map((each) => ended(each, id)));
  expect(first).toEqual(second);
  await gateways[0].quiet();
  const { completed } = first!.request_counts!;
  const { output } = await resultsOf(clients[1], first!);
  expect(output).toHaveLength(completed);
  expect(await balance()).toEqual({ available: FUNDS - BigInt(completed) * COST, locked: 0n });
});
