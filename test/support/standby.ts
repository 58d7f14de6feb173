import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Client } from 'pg';
import { expect } from 'vitest';
import { startPostgres, type Postgres } from './postgres.ts';

/** Called with what must be closed at the end, the last one first. */
export type Defer = (dispose: () => Promise<void>) => void;

/** One address for whichever server is the primary, as a virtual address or a proxy gives it. */
export interface PrimaryAddress {
  readonly url: string;
  /** From now on it leads to this server. Open connections are cut. */
  leadTo(postgres: Pick<Postgres, 'port'>): void;
}

export async function startAddress(first: Postgres, defer: Defer): Promise<PrimaryAddress> {
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
  defer(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return {
    url: url.href,
    leadTo(postgres) {
      port = postgres.port;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The first row of a statement. */
export async function askServer<T extends object>({ url }: Pick<Postgres, 'url'>, text: string): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text)).rows[0]!;
  } finally {
    await client.end();
  }
}

export async function startServer(defer: Defer, standbyOf?: Postgres): Promise<Postgres> {
  const postgres = await startPostgres(standbyOf === undefined ? {} : { standbyOf });
  defer(postgres.stop);
  return postgres;
}

/** Starts a standby. If `isSynchronous`, each commit waits for it from now on. */
export async function startStandby(primary: Postgres, isSynchronous: boolean, defer: Defer): Promise<Postgres> {
  const standby = await startServer(defer, primary);
  const streaming = () =>
    askServer<{ count: string }>(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
  await expect.poll(streaming, { timeout: 60_000 }).toEqual({ count: '1' });
  if (isSynchronous) {
    await askServer(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await askServer(primary, 'SELECT pg_reload_conf()');
    const synchronous = () =>
      askServer<{ state: string }>(primary, 'SELECT sync_state AS state FROM pg_stat_replication');
    await expect.poll(synchronous, { timeout: 60_000 }).toEqual({ state: 'sync' });
  }
  return standby;
}

/** Waits until a standby has everything of its primary, and cuts it off: nothing reaches it any more. */
export async function cutOff(standby: Postgres, primary: Postgres): Promise<void> {
  const { at } = await askServer<{ at: string }>(primary, 'SELECT pg_current_wal_flush_lsn() AS at');
  const hasAll = async () =>
    (await askServer<{ has: boolean }>(standby, `SELECT pg_last_wal_replay_lsn() >= '${at}'::pg_lsn AS has`)).has;
  await expect.poll(hasAll, { timeout: 60_000 }).toBe(true);
  await askServer(standby, "ALTER SYSTEM SET primary_conninfo = ''");
  await askServer(standby, 'SELECT pg_reload_conf()');
  const senders = async () =>
    (await askServer<{ n: string }>(primary, 'SELECT count(*) AS n FROM pg_stat_replication')).n;
  await expect.poll(senders, { timeout: 60_000 }).toBe('0');
}
