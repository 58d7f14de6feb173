import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { escrowOf } from '#billing';
import { begin, chatLine, clientAt, ended, resultsOf } from '../openai/batches/support/batch-client.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';

// Two gateways work on batches of one account, and its client polls at both.

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
