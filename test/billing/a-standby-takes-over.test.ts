import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Client } from 'pg';
import { afterEach, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { LedgerUnavailable, type Ledger } from '#billing';
import { openDatabase } from '#store';
import { atThisLoad } from '../support/at-this-load.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { contradictions, loadLedger } from '../support/ledger-load.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PROMOTIONS = DEEP ? 50 : 2;
const GATEWAYS = 3;
/** Pairs of a lock and its end before a promotion, and as many at once for each gateway. */
const [PAIRS, WIDTH] = DEEP ? [300, 16] : [100, 8];
const BACK_MS_MAX = 10_000;

const disposals: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

/** One address for whichever server is the primary, as a virtual address or a proxy gives it. */
async function startAddress(first: Postgres) {
  let port = first.port;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: '127.0.0.1', port, noDelay: true });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(first.url);
  url.port = String((server.address() as AddressInfo).port);
  disposals.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return {
    url: url.href,
    leadTo(postgres: Postgres) {
      port = postgres.port;
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function ask<T extends object>({ url }: Postgres, text: string): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text)).rows[0]!;
  } finally {
    await client.end();
  }
}

async function startServer(standbyOf?: Postgres): Promise<Postgres> {
  const postgres = await startPostgres(standbyOf === undefined ? {} : { standbyOf });
  disposals.push(postgres.stop);
  return postgres;
}

/** Starts a standby. If `isSynchronous`, each commit waits for it from now on. */
async function startStandby(primary: Postgres, isSynchronous: boolean): Promise<Postgres> {
  const standby = await startServer(primary);
  const streaming = () =>
    ask<{ count: string }>(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
  await expect.poll(streaming, { timeout: 60_000 }).toEqual({ count: '1' });
  if (isSynchronous) {
    await ask(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await ask(primary, 'SELECT pg_reload_conf()');
    const synchronous = () => ask<{ state: string }>(primary, 'SELECT sync_state AS state FROM pg_stat_replication');
    await expect.poll(synchronous, { timeout: 60_000 }).toEqual({ state: 'sync' });
  }
  return standby;
}

async function startLedger(url: string): Promise<Ledger> {
  const database = await openDatabase({ url, dataDir: '' });
  const ledger = await createLedger({ database });
  disposals.push(async () => {
    await ledger.close();
    await database.close();
  });
  return ledger;
}

test(
  'a synchronous standby takes over under load: nothing acknowledged is lost, and the gateways go on by themselves',
  { timeout: 1_800_000 },
  async () => {
    let primary = await startServer();
    const address = await startAddress(primary);
    const database = await openDatabase({ url: address.url, dataDir: '' });
    disposals.push(database.close);
    await createPriceBook(database).remember([CRASH_PRICE]);
    const ledgers = await Promise.all(Array.from({ length: GATEWAYS }, () => startLedger(address.url)));
    let isFinished = false;
    let pairs = 0;
    let waiting: { pairs: number; resolve: () => void } | undefined;
    const pairsMore = (count: number) => new Promise<void>((resolve) => (waiting = { pairs: pairs + count, resolve }));
    const onPair = () => {
      pairs += 1;
      if (waiting && pairs >= waiting.pairs) waiting.resolve();
    };
    const loads = ledgers.map((ledger, index) =>
      loadLedger(ledger, { width: WIDTH, prefix: `g${index}`, done: () => isFinished, onPair }),
    );
    const backMs: number[] = [];
    for (let round = 0; round < PROMOTIONS; round += 1) {
      const standby = await startStandby(primary, true);
      await pairsMore(PAIRS);
      await primary.kill9();
      // Some find a standby at the address before it is the primary.
      if (round % 2 === 1) address.leadTo(standby);
      await standby.promote();
      // The one that is left is alone until it has a standby.
      await ask(standby, 'ALTER SYSTEM RESET synchronous_standby_names');
      await ask(standby, 'SELECT pg_reload_conf()');
      const begun = performance.now();
      address.leadTo(standby);
      await pairsMore(30);
      backMs.push(performance.now() - begun);
      primary = standby;
    }
    isFinished = true;
    for (const [index, load] of loads.entries()) {
      const { told, surprises } = await load;
      expect(surprises).toEqual([]);
      expect(await contradictions(ledgers[index]!, told)).toEqual([]);
    }
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(Math.max(...backMs)).toBeLessThan(atThisLoad(BACK_MS_MAX));
  },
);

test('after a failover to a standby that lacks what was acknowledged, a running gateway writes nothing', async () => {
  const primary = await startServer();
  const address = await startAddress(primary);
  const ledger = await startLedger(address.url);
  const fund = (id: string) => ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  await fund('before');
  const standby = await startStandby(primary, false);
  const received = async () => (await ask<{ n: string }>(standby, 'SELECT count(*) AS n FROM transfers')).n;
  await expect.poll(received, { timeout: 60_000 }).toBe('1');
  // Nothing reaches the standby any more.
  await ask(standby, "ALTER SYSTEM SET primary_conninfo = ''");
  await ask(standby, 'SELECT pg_reload_conf()');
  const senders = async () => (await ask<{ n: string }>(primary, 'SELECT count(*) AS n FROM pg_stat_replication')).n;
  await expect.poll(senders, { timeout: 60_000 }).toBe('0');
  expect(await fund('lost')).toMatchObject({ ok: true });
  await primary.kill9();
  await standby.promote();
  address.leadTo(standby);
  const refused = fund('after');
  await expect(refused).rejects.toThrow(LedgerUnavailable);
  await expect(refused).rejects.toThrow(
    /The database lacks operations that were acknowledged: the journal of this gateway ends with group 1, and had group 2/,
  );
  expect(await ask(standby, 'SELECT count(*) AS n FROM transfers')).toEqual({ n: '1' });
  // A gateway that begins now has acknowledged nothing yet. Whether it may go on is asked at its start.
  expect(await (await startLedger(address.url)).balance('escrow:a')).toEqual({ available: 1_000n, locked: 0n });
});
