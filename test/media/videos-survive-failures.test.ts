import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { findFreePort } from '../support/free-port.ts';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// A disk that is full, and a provider that is away: the video comes once they are mended, charged once, or is free.

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

async function startWorld(dataDir = newDataDirectory(), media = '', proxied: ((url: string) => string) | null = null) {
  const provider = await startVideoProvider({ port: await findFreePort() });
  onTestFinished(() => provider.close());
  let passed = 0;
  const spine = await startSpine({
    dataDir,
    now: () => Date.now() + passed,
    elapsed: () => performance.now(),
    toml:
      `${UNHURRIED}[billing]\nsweep_ms = 50\n[upstream]\ncooldown_ms = 1\n[tasks]\nlook_ms_max = 1000\n` +
      `[media]\nfree_bytes_min = 0\n${media}${videoBlock({ url: proxied?.(provider.url) ?? provider.url })}`,
  });
  onTestFinished(() => spine.stop());
  return {
    provider,
    spine,
    pass: (ms: number) => (passed += ms),
    queue: async () =>
      (
        (await (
          await spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' })
        ).json()) as Queued
      ).id,
    retrieve: (id: string, waits = true) => spine.post('/video/retrieve', { task_id: id, wait_for_final: waits }),
  };
}

/** Makes a folder a disk of 2 MiB; false where nobody may mount: then there is nothing to ask. */
function mountSmallDisk(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test('a disk that becomes full while a file is stored leaves nothing, and costs nothing', async () => {
  const dataDir = newDataDirectory();
  const folder = join(dataDir, 'blobs');
  mkdirSync(folder, { recursive: true });
  if (!mountSmallDisk(folder)) return;
  // The last to be called: the gateway has the folder open until then.
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder]);
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { provider, spine, queue, retrieve } = await startWorld(dataDir, `file_bytes_max = ${MIB}\n`);
  const before = await spine.balance();
  // Something else fills the disk while the video is made.
  provider.begin((seconds) => ({ status: 'in_progress', file: tinyMp4(seconds, 900_000) }));
  const id = await queue();
  execFileSync('dd', ['if=/dev/zero', `of=${join(folder, 'ballast')}`, 'bs=64k', 'count=26'], { stdio: 'ignore' });
  provider.last().status = 'completed';
  expect(await (await retrieve(id, false)).json()).toMatchObject({
    status: expect.stringMatching(/queued|generating/) as string,
  });
  await expect.poll(() => spine.logs.some((line) => line.includes('ENOSPC')), { timeout: 60_000 }).toBe(true);
  const files = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .toSorted();
  await expect.poll(files, { timeout: 60_000 }).toEqual(['ballast', 'holder']);
  expect(await spine.balance()).toEqual({ available: before.available - 450_000n, locked: 450_000n });
  // A new video is refused before anything is locked for it.
  expect((await spine.post('/video/queue', { model: 'test/film', prompt: 'Another', duration: '4s' })).status).toBe(
    503,
  );
  // There is room again: the file is fetched anew.
  rmSync(join(folder, 'ballast'));
  const file = async () => Buffer.from(await (await retrieve(id)).arrayBuffer());
  await expect.poll(file, { timeout: 60_000 }).toEqual(provider.last().file);
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a provider that is away for ten minutes gives its video when it is back', async () => {
  const { provider, spine, pass, queue, retrieve } = await startWorld();
  const before = await spine.balance();
  provider.begin(() => ({ status: 'in_progress' }));
  const id = await queue();
  const { port } = new URL(provider.url);
  const { jobs } = provider;
  const job = provider.last();
  await provider.close();
  // Nobody answers at its address.
  for (let minute = 0; minute < 10; minute += 1) {
    pass(MINUTE_MS);
    const seen = (await (await retrieve(id, false)).json()) as { status: string };
    expect(seen.status).toMatch(/queued|generating/);
  }
  expect((await spine.balance()).locked).toBe(450_000n);
  const back = await startVideoProvider({ port: Number(port), jobs });
  onTestFinished(() => back.close());
  job.status = 'completed';
  await expect
    .poll(async () => (await retrieve(id)).headers.get('content-type'), { timeout: 60_000 })
    .toBe('video/mp4');
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a provider that hangs up while it begins is not asked again, and the video is free', async () => {
  const hanging = createServer((socket) => socket.once('data', () => socket.destroy()));
  let hung = 0;
  hanging.on('connection', () => (hung += 1));
  await new Promise<void>((resolve) => void hanging.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void hanging.close());
  const { port } = hanging.address() as { port: number };
  const { spine } = await startWorld(newDataDirectory(), '', () => `http://127.0.0.1:${port}/v1`);
  const before = await spine.balance();
  const refused = await spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' });
  expect(refused.status).toBeGreaterThanOrEqual(500);
  await spine.quiet();
  expect([await spine.balance(), hung]).toEqual([before, 1]);
  // Its room is there for others.
  expect(await spine.app.database.query({ name: 'test/rooms', text: 'SELECT id FROM blob_rooms' })).toEqual([]);
  expect(await spine.faults()).toEqual([]);
});
