import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// The files of an account come one byte at a time, from four providers. Others get theirs.

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

async function startWorld() {
  const [slow, honest] = [await startVideoProvider(), await startVideoProvider()];
  onTestFinished(() => honest.close());
  let passed = 0;
  const dataDir = newDataDirectory();
  const names = ['a', 'b', 'c', 'd'].map((name) => `slow/${name}`);
  const spine = await startSpine({
    dataDir,
    now: () => Date.now() + passed,
    elapsed: () => performance.now(),
    toml:
      `${UNHURRIED}[billing]\nsweep_ms = 50\n[media]\nfree_bytes_min = 0\n` +
      names.map((name) => videoBlock({ name, provider: name.replace('/', ' '), url: slow.url })).join('') +
      videoBlock({ url: honest.url }),
  });
  onTestFinished(() => spine.stop());
  // Before the gateway stops, because it waits for its running downloads.
  onTestFinished(() => slow.close());
  let open = 0;
  slow.begin(() => ({
    serve(_request, response) {
      open += 1;
      response.writeHead(200, { 'content-type': 'video/mp4' });
      const timer = setInterval(() => response.write('x'), 1_000);
      response.write('\0\0\0\x18ftypisom\0\0\0\0');
      response.once('close', () => clearInterval(timer));
    },
  }));
  const greedy = await spine.tenant('greedy', '10');
  const queue = async (model: string, key: string, n = 1) => {
    const body = { model, prompt: 'A tollgate', duration: '4s', n };
    const answer = await spine.post('/video/queue', body, { authorization: `Bearer ${key}` });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as Queued).id;
  };
  return {
    spine,
    slow,
    honest,
    dataDir,
    names,
    greedy,
    queue,
    open: () => open,
    pass: (ms: number) => (passed += ms),
    retrieve: (id: string) => spine.post('/video/retrieve', { task_id: id, wait_for_final: true }),
  };
}

test('a video is fetched at once while the files of another account hold all the slots that they can get', async () => {
  const { spine, names, greedy, queue, open, retrieve } = await startWorld();
  const tasks = await Promise.all(names.map((name) => queue(name, greedy.key, 2)));
  expect(tasks).toHaveLength(4);
  await expect.poll(open, { timeout: 60_000 }).toBe(2);
  const began = performance.now();
  expect((await retrieve(await queue('test/film', spine.key))).headers.get('content-type')).toBe('video/mp4');
  // A slot that another account holds becomes free after 10 seconds.
  expect(performance.now() - began).toBeLessThan(atThisLoad(8_000));
  expect((await spine.audit()).ok).toBe(true);
});

test('a file that is finished in time is waited for when the time is over, and is paid', async () => {
  const { spine, honest, dataDir, queue, retrieve, pass } = await startWorld();
  const before = await spine.balance();
  const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  honest.begin(() => ({
    serve(_request, response) {
      const { file } = honest.last();
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': file.length });
      response.write(file.subarray(0, 20));
      asked.resolve();
      void go.promise.then(() => response.end(file.subarray(20)));
    },
  }));
  const id = await queue('test/film', spine.key);
  await asked.promise;
  const database = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true });
  onTestFinished(() => database.close());
  const short = database.prepare(
    'SELECT count(*) AS n FROM task_calls c JOIN tasks t USING (task_id) WHERE c.kept_until < t.expires_at',
  );
  pass(MINUTE_MS + 1_000);
  await expect.poll(() => Number(short.get()!['n']), { timeout: 60_000 }).toBe(0);
  // Its time is over, and its download has ten minutes left.
  pass(2 * HOUR_MS);
  const looked = honest.requests.length;
  await expect.poll(() => honest.requests.length, { timeout: 60_000 }).toBeGreaterThan(looked);
  go.resolve();
  expect((await retrieve(id)).headers.get('content-type')).toBe('video/mp4');
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a video that is not finished when its time is over ends then', async () => {
  const { spine, honest, queue, retrieve, pass } = await startWorld();
  const before = await spine.balance();
  honest.begin(() => ({ status: 'in_progress' }));
  const id = await queue('test/film', spine.key);
  pass(2 * HOUR_MS + MINUTE_MS);
  expect(await (await retrieve(id)).json()).toMatchObject({ status: 'failed', error: { code: 'time_limit' } });
  await expect.poll(() => honest.last().cancelled, { timeout: 60_000 }).toBe(true);
  expect(await spine.balance()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});
