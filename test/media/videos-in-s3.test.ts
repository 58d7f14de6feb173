import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { CLUSTER_TOML } from '../support/cluster.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startProvider } from '../support/provider.ts';
import { startS3Server } from '../support/s3-server.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// Two gateways of one PostgreSQL keep their files in one bucket: either gives them out, and what the bucket does not
// have is not charged.

const MINUTE_MS = 60_000;

test('files are in the bucket, at either gateway, and a bucket that is away costs nobody anything', async () => {
  const [store, filmer, provider] = [await startS3Server(), await startVideoProvider(), await startProvider()];
  const fresh = await freshDatabase(inject('postgresUrl'));
  onTestFinished(async () => {
    await fresh.drop();
    await store.stop();
    await filmer.close();
    await provider.stop();
  });
  let late = 0;
  const start = async (dataDir: string) => {
    const spine = await startSpine({
      dataDir,
      provider,
      databaseUrl: fresh.url,
      now: () => Date.now() + late,
      elapsed: () => performance.now(),
      toml: `${UNHURRIED}[tasks]\nlook_ms_max = 1000\n[media]\nfree_bytes_min = 1\n${store.toml}${videoBlock({ url: filmer.url })}`,
    });
    onTestFinished(() => spine.stop());
    return spine;
  };
  const folders = [newDataDirectory(), newDataDirectory()] as const;
  const [one, two] = [await start(folders[0]), await start(folders[1])];
  const auth = { authorization: `Bearer ${one.key}` };
  const queue = async (at: Spine) => {
    const response = await at.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' }, auth);
    expect(response.status).toBe(200);
    return ((await response.json()) as Queued).id;
  };
  const retrieve = (at: Spine, id: string, waits = true) =>
    at.post('/video/retrieve', { task_id: id, wait_for_final: waits }, auth);
  const fileAt = async (at: Spine, id: string) => Buffer.from(await (await retrieve(at, id)).arrayBuffer());

  const before = await one.balance();
  const spent = async () => before.available - (await one.balance()).available;
  const first = await queue(one);
  for (const at of [one, two]) {
    expect(await fileAt(at, first)).toEqual(filmer.last().file);
  }
  expect(store.keys()).toHaveLength(1);
  for (const folder of folders)
    if (existsSync(join(folder, 'blobs'))) expect(readdirSync(join(folder, 'blobs'))).toEqual([]);
  expect(await spent()).toBe(450_000n);

  // The bucket is away: what is there is told to be so for now, and what is finished waits for it.
  await store.away();
  const gone = await retrieve(two, first, false);
  expect([gone.status, gone.headers.get('retry-after')]).toEqual([503, '5']);
  const second = await queue(two);
  const waits = await retrieve(two, second, false);
  expect(await waits.json()).toMatchObject({ status: expect.stringMatching(/queued|generating/) as string });
  const told = () => [...one.logs, ...two.logs].some((line) => line.includes('the store of files cannot be reached'));
  await expect.poll(told, { timeout: 60_000 }).toBe(true);
  expect((await one.balance()).locked).toBe(450_000n);
  await store.back();
  await expect
    .poll(async () => (await retrieve(one, second)).headers.get('content-type'), { timeout: 60_000 })
    .toBe('video/mp4');
  expect(await fileAt(two, second)).toEqual(filmer.last().file);
  expect(await spent()).toBe(900_000n);

  // Away until the time is over: free, and the provider is told.
  await store.away();
  const third = await queue(one);
  await retrieve(one, third, false);
  late += 180 * MINUTE_MS;
  await expect
    .poll(async () => (await (await retrieve(one, third)).json()) as object, { timeout: 60_000 })
    .toMatchObject({ status: 'failed', error: { code: 'time_limit' } });
  expect(await spent()).toBe(900_000n);
  await store.back();
  // Two files, each charged once.
  expect(store.keys()).toHaveLength(2);
  expect(await one.faults()).toEqual([]);
});

test('a gateway that got a bucket still gives the files on its disk to the others', async () => {
  const [store, filmer, provider] = [await startS3Server(), await startVideoProvider(), await startProvider()];
  const fresh = await freshDatabase(inject('postgresUrl'));
  onTestFinished(async () => {
    await fresh.drop();
    await store.stop();
    await filmer.close();
    await provider.stop();
  });
  const base = `${UNHURRIED}${CLUSTER_TOML}[tasks]\nlook_ms_max = 1000\n[media]\nfree_bytes_min = 1\n`;
  const start = async (dataDir: string, bucket: string) => {
    const toml = `${base}${bucket}${videoBlock({ url: filmer.url })}`;
    const spine = await startSpine({ dataDir, provider, databaseUrl: fresh.url, toml });
    onTestFinished(() => spine.stop());
    return spine;
  };
  const folder = newDataDirectory();
  const alone = await start(folder, '');
  const auth = { authorization: `Bearer ${alone.key}` };
  const asked = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
  const { id } = (await (await alone.post('/video/queue', asked, auth)).json()) as Queued;
  const retrieve = (at: Spine) => at.post('/video/retrieve', { task_id: id, wait_for_final: true }, auth);
  expect((await retrieve(alone)).headers.get('content-type')).toBe('video/mp4');
  await alone.stop();

  const [, other] = [await start(folder, store.toml), await start(newDataDirectory(), store.toml)];
  const response = await retrieve(other);
  expect(response.status).toBe(200);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(filmer.last().file);
  expect(store.keys()).toEqual([]);
  expect(await other.faults()).toEqual([]);
});
