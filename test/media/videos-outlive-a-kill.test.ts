import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startProcessCluster } from '../support/cluster.ts';
import type { Gateway } from '../support/gateway.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// Two gateways on one PostgreSQL. Each step of a video's life sees one of them killed; the other goes on.

const TOML = `
[limits]
requests_per_minute = 1000000
burst = 1000000
[billing]
sweep_ms = 100
[tasks]
look_ms_max = 1000
[media]
free_bytes_min = 0
`;

const CHARGED = "SELECT count(*) AS n, COALESCE(sum(charged), 0) AS charged FROM locks WHERE state = 'settled'";
const HELD = "SELECT count(*) AS n FROM locks WHERE state = 'held'";
const BLOBS = "SELECT count(*) AS n FROM blobs WHERE state = 'stored'";
const WAITING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/**
 * The note of an end waits for an advisory lock. A lock of the row would not do: looks skip locked rows, so none would
 * fetch the file.
 */
const WAIT_AT_THE_END = `
  CREATE FUNCTION wait_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
  CREATE TRIGGER wait_at_the_end BEFORE UPDATE ON tasks FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION wait_at_the_end()`;

/**
 * A transaction that others wait for. Whoever waits at its end is gone with it, as its gateway is. Another connection
 * looks for those who wait: a transaction sees the same connections for ever, and a gateway may open new ones.
 */
async function holdUp(database: Client, url: string, statement: string) {
  const holder = new Client({ connectionString: url });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query('BEGIN');
  await holder.query(statement);
  let waits: readonly { readonly pid: number }[] = [];
  return {
    async isWaitedFor() {
      const poll = async () => (waits = (await database.query<{ pid: number }>(WAITING)).rows).length;
      await expect.poll(poll, { timeout: 60_000, interval: 50 }).toBeGreaterThan(0);
    },
    async end() {
      for (const { pid } of waits) await database.query('SELECT pg_terminate_backend($1)', [pid]);
      await holder.query('ROLLBACK');
    },
  };
}

test('a gateway is killed at each step of a video: one charge, one file', { timeout: 900_000 }, async () => {
  const provider = await startVideoProvider();
  onTestFinished(() => provider.close());
  const cluster = await startProcessCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: TOML + videoBlock({ url: provider.url }),
  });
  onTestFinished(() => cluster.stop());
  const gateways = cluster.gateways as [Gateway, Gateway];
  const owner = await gateways[0].openAccount('films', 100);
  const database = new Client({ connectionString: cluster.databaseUrl });
  await database.connect();
  onTestFinished(() => database.end());

  const post = ({ baseUrl }: Gateway, path: string, body: object) =>
    fetch(`${baseUrl}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const queue = async (at: Gateway) => {
    const response = await post(at, '/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' });
    expect(response.status).toBe(200);
    return ((await response.json()) as Queued).id;
  };
  const retrieve = (at: Gateway, id: string, waits = true) =>
    post(at, '/video/retrieve', { task_id: id, wait_for_final: waits });
  const fileAt = async (at: Gateway, id: string) => {
    const response = await retrieve(at, id);
    return response.headers.get('content-type') === 'video/mp4'
      ? Buffer.from(await response.arrayBuffer())
      : await response.text();
  };
  const eventually = async (at: Gateway, id: string, file: Buffer) => {
    await expect.poll(() => fileAt(at, id), { timeout: 60_000, interval: 200 }).toEqual(file);
  };
  const charges = async () => {
    const { rows } = await database.query<{ n: string; charged: string }>(CHARGED);
    return [Number(rows[0]!.n), Number(rows[0]!.charged)];
  };
  const holder = ({ dataDir }: Gateway) => readFileSync(join(dataDir, 'blobs', 'holder'), 'utf8');
  const [first, second] = gateways;

  // After the queue, before anything is fetched.
  provider.begin(() => ({ status: 'in_progress' }));
  const one = await queue(first);
  await first.kill9();
  const [jobOne] = [provider.last()];
  jobOne.status = 'completed';
  await eventually(second, one, jobOne.file);
  expect(await charges()).toEqual([1, 450_000]);
  await first.restart();
  expect(await fileAt(first, one)).toEqual(jobOne.file);

  // While the file is fetched: it stalls in the middle.
  const file = tinyMp4(4, 100_000, 9);
  let asked = 0;
  provider.begin(() => ({
    file,
    serve: (_request, response) => {
      asked += 1;
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': file.length });
      response.write(file.subarray(0, 50_000));
    },
  }));
  const two = await queue(first);
  const jobTwo = provider.last();
  await retrieve(first, two, false);
  await expect.poll(() => asked, { timeout: 60_000 }).toBe(1);
  const writing = await database.query<{ holder: string }>("SELECT holder FROM blobs WHERE state = 'writing'");
  const [writer, other] = writing.rows[0]!.holder === holder(first) ? [first, second] : [second, first];
  await writer.kill9();
  jobTwo.serve = null;
  await eventually(other, two, file);
  expect(await charges()).toEqual([2, 900_000]);

  // After it was stored: the other gateway asks for it, and waits for its return while it is gone.
  await writer.restart();
  expect(await fileAt(writer, two)).toEqual(file);
  await other.kill9();
  const gone = await retrieve(writer, two, false);
  expect([gone.status, gone.headers.get('retry-after')]).toEqual([503, '5']);
  await other.restart();
  await eventually(writer, two, file);

  // Between the provider's answer and the note of its job: the note waits for this transaction, and dies with it.
  const blocked = await holdUp(database, cluster.databaseUrl, 'LOCK TABLE task_calls IN SHARE MODE');
  provider.begin(() => ({}));
  const jobs = provider.jobs.size;
  const lost = post(first, '/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' }).catch(
    () => null,
  );
  await blocked.isWaitedFor();
  expect(provider.jobs.size).toBe(jobs + 1);
  await first.kill9();
  await lost;
  await blocked.end();
  // Its money is held, and goes back when the time is over.
  expect(await database.query(HELD)).toMatchObject({ rows: [{ n: '1' }] });
  await database.query("UPDATE locks SET expires_at = 1 WHERE state = 'held'");
  await expect.poll(async () => (await database.query(HELD)).rows, { timeout: 60_000 }).toEqual([{ n: '0' }]);
  const again = await queue(second);
  await eventually(second, again, provider.last().file);
  expect(await charges()).toEqual([3, 1_350_000]);
  await first.restart();

  // Between the file, which is stored, and the note of the end.
  provider.begin(() => ({ status: 'in_progress' }));
  const four = await queue(first);
  const jobFour = provider.last();
  await database.query(WAIT_AT_THE_END);
  const stored = await holdUp(database, cluster.databaseUrl, 'SELECT pg_advisory_xact_lock(1)');
  jobFour.status = 'completed';
  const unheard = retrieve(first, four).catch(() => null);
  await stored.isWaitedFor();
  expect(await database.query(BLOBS)).toMatchObject({ rows: [{ n: '4' }] });
  await first.kill9();
  await unheard;
  await stored.end();
  await first.restart();
  await eventually(second, four, jobFour.file);

  expect(await charges()).toEqual([4, 1_800_000]);
  expect(await database.query(HELD)).toMatchObject({ rows: [{ n: '0' }] });
  expect(await database.query(BLOBS)).toMatchObject({ rows: [{ n: '4' }] });
  expect(await first.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
});
