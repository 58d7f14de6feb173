import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock, type VideoProvider } from './support/video-provider.ts';

// Times and room: what ends a video, and what refuses one.

const HOUR_MS = 3_600_000;

interface World {
  readonly provider: VideoProvider;
  readonly spine: Spine;
  readonly dataDir: string;
  pass(ms: number): void;
  queue(more?: object): Promise<Response>;
  retrieve(id: string): Promise<Response>;
}

async function startWorld(media: string): Promise<World> {
  const provider = await startVideoProvider();
  onTestFinished(() => provider.close());
  const dataDir = newDataDirectory();
  let passed = 0;
  const spine = await startSpine({
    dataDir,
    now: () => Date.now() + passed,
    elapsed: () => performance.now() + passed,
    toml: `${UNHURRIED}[billing]\nsweep_ms = 50\n[media]\n${media}\n${videoBlock({ url: provider.url })}`,
  });
  onTestFinished(() => spine.stop());
  return {
    provider,
    spine,
    dataDir,
    pass(ms) {
      passed += ms;
    },
    queue: (more = {}) =>
      spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s', ...more }),
    retrieve: (id) => spine.post('/video/retrieve', { task_id: id, wait_for_final: true }),
  };
}

const filesIn = (dataDir: string) =>
  readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'holder')
    .map(({ name }) => name);

test('a video that takes too long is free, and its provider is told', async () => {
  const { provider, spine, pass, queue, retrieve } = await startWorld('free_bytes_min = 0');
  const before = await spine.balance();
  provider.begin(() => ({ status: 'in_progress' }));
  const { id } = (await (await queue()).json()) as Queued;
  pass(3 * HOUR_MS);
  const answer = (await (await retrieve(id)).json()) as { status: string };
  expect(answer).toMatchObject({ status: 'failed', error: { code: 'time_limit' } });
  expect(await spine.balance()).toEqual(before);
  await expect.poll(() => provider.last().cancelled, { timeout: 60_000 }).toBe(true);
  expect(await spine.faults()).toEqual([]);
});

/** The figure that a query of one row and one column returns. */
function figureIn(dataDir: string, query: string): number {
  const database = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true });
  try {
    return Number(Object.values(database.prepare(query).get()!)[0]);
  } finally {
    database.close();
  }
}

/** The number of files that are here as a whole. */
const storedIn = (dataDir: string) => figureIn(dataDir, "SELECT count(*) FROM blobs WHERE state = 'stored'");

/** A minute passes, after which the lock of the task lasts as long as the task. Before that it lasts for an hour. */
async function passFirstMinute({ dataDir, pass }: World): Promise<void> {
  const short = 'SELECT count(*) FROM task_calls c JOIN tasks t USING (task_id) WHERE c.kept_until < t.expires_at';
  pass(61_000);
  await expect.poll(() => figureIn(dataDir, short), { timeout: 60_000 }).toBe(0);
}

/** Two variants. The file of the first is here, and the second is still being made. */
async function startHalf({ provider, spine, dataDir, queue }: World) {
  const before = await spine.balance();
  provider.begin(() => ({ status: provider.jobs.size === 0 ? 'completed' : 'in_progress' }));
  const { id } = (await (await queue({ n: 2 })).json()) as Queued;
  await expect.poll(() => storedIn(dataDir), { timeout: 60_000 }).toBe(1);
  const [first, second] = [...provider.jobs.values()];
  return { id, first: first!, second: second!, paid: async () => before.available - (await spine.balance()).available };
}

test('when its time is over a task ends with the videos that are here, and the others are cancelled', async () => {
  const world = await startWorld('free_bytes_min = 0');
  const { id, first, second, paid } = await startHalf(world);
  await passFirstMinute(world);
  world.pass(2 * HOUR_MS);
  expect((await world.retrieve(id)).headers.get('content-type')).toBe('application/zip');
  expect(await paid()).toBe(450_000n);
  await expect.poll(() => second.cancelled, { timeout: 60_000 }).toBe(true);
  expect(first.cancelled).toBe(false);
  expect(await world.spine.faults()).toEqual([]);
});

test('it does so, too, if the provider of the others does not answer', async () => {
  const world = await startWorld('free_bytes_min = 0');
  const { id, second, paid } = await startHalf(world);
  second.hangs = true;
  await passFirstMinute(world);
  world.pass(2 * HOUR_MS);
  expect((await world.retrieve(id)).headers.get('content-type')).toBe('application/zip');
  expect(await paid()).toBe(450_000n);
  expect(await world.spine.faults()).toEqual([]);
});

test('a video is fetched although its provider does not answer about another one', async () => {
  const { provider, spine, dataDir, queue, retrieve } = await startWorld('free_bytes_min = 0');
  const before = await spine.balance();
  provider.begin(() => ({ hangs: provider.jobs.size === 0 }));
  const { id } = (await (await queue({ n: 2 })).json()) as Queued;
  await expect.poll(() => filesIn(dataDir), { timeout: 60_000 }).toHaveLength(1);
  const [first] = provider.jobs.values();
  first!.hangs = false;
  expect((await retrieve(id)).headers.get('content-type')).toBe('application/zip');
  expect(before.available - (await spine.balance()).available).toBe(900_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a task with little time waits for all of its videos, too', async () => {
  const world = await startWorld('free_bytes_min = 0\nvideo_ttl_ms = 60000');
  const { id, second, paid } = await startHalf(world);
  world.pass(3_000);
  second.status = 'completed';
  expect((await world.retrieve(id)).headers.get('content-type')).toBe('application/zip');
  expect(await paid()).toBe(900_000n);
  expect(second.cancelled).toBe(false);
  expect(await world.spine.faults()).toEqual([]);
});

test('files are kept for a day, and nothing of them after that', async () => {
  const { spine, dataDir, pass, queue, retrieve } = await startWorld('free_bytes_min = 0');
  const { id } = (await (await queue()).json()) as Queued;
  expect((await retrieve(id)).status).toBe(200);
  expect(filesIn(dataDir)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/) as string]);
  pass(23 * HOUR_MS);
  expect((await retrieve(id)).status).toBe(200);
  pass(2 * HOUR_MS);
  const late = await retrieve(id);
  expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([404, 'expired']);
  await expect.poll(() => filesIn(dataDir), { timeout: 60_000 }).toEqual([]);
  expect(await spine.faults()).toEqual([]);
});

test.each([
  ['of the account', 429, 'free_bytes_min = 0\nfile_bytes_max = 4096\naccount_bytes_max = 4500'],
  ['of all files', 503, 'free_bytes_min = 0\nfile_bytes_max = 4096\nbytes_max = 4500'],
])('a video for which the room %s does not reach is refused before anything is locked', async (_of, status, media) => {
  const { provider, spine, queue, retrieve } = await startWorld(media);
  const { id } = (await (await queue()).json()) as Queued;
  expect((await retrieve(id)).status).toBe(200);
  const before = await spine.balance();
  const made = provider.jobs.size;
  const refused = await queue();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([status, '60']);
  // What is wrong with a request itself is said first.
  const wrong = async (more: object) =>
    (await spine.post('/video/queue', { model: 'test/film', prompt: 'A', duration: '4s', ...more })).status;
  expect([await wrong({ model: 'test/none' }), await wrong({ duration: '7s' })]).toEqual([404, 422]);
  expect([await spine.balance(), provider.jobs.size]).toEqual([before, made]);
});

test('a quote for which there is no room yet is good once there is', async () => {
  const { provider, spine, queue, retrieve } = await startWorld(
    'free_bytes_min = 0\nfile_bytes_max = 4096\naccount_bytes_max = 4500',
  );
  provider.begin(() => ({ status: 'in_progress' }));
  const { id } = (await (await queue()).json()) as Queued;
  const ask = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
  const { quote_id: quote } = (await (await spine.post('/video/quote', ask)).json()) as { quote_id: string };
  const quoted = () => spine.post('/video/queue', { ...ask, quote_id: quote });
  expect([(await quoted()).status, (await quoted()).status]).toEqual([429, 429]);
  provider.last().status = 'failed';
  expect(await (await retrieve(id)).json()).toMatchObject({ status: 'failed' });
  provider.begin(() => ({}));
  const { id: next } = (await (await quoted()).json()) as Queued;
  expect((await retrieve(next)).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
});

test('what is wrong with a video is said before its room in chat, too', async () => {
  const { spine, queue } = await startWorld('free_bytes_min = 0\nfile_bytes_max = 4096\naccount_bytes_max = 4096');
  expect((await queue()).status).toBe(200);
  const chat = async (more: object) =>
    (
      await spine.post('/chat/completions', {
        model: 'video/test/film',
        messages: [{ role: 'user', content: 'A tollgate' }],
        ...more,
      })
    ).status;
  expect([await chat({ seed: 1 }), await chat({ max_cost: 0.01 })]).toEqual([429, 422]);
});

test('videos under way count with the largest that they may become, so that none ends without its file', async () => {
  const { provider, spine, queue, retrieve } = await startWorld(
    'free_bytes_min = 0\nfile_bytes_max = 4096\naccount_bytes_max = 8192',
  );
  provider.begin(() => ({ status: 'in_progress' }));
  const ids = [];
  for (let n = 0; n < 2; n += 1) ids.push(((await (await queue()).json()) as Queued).id);
  const before = await spine.balance();
  const refused = await queue();
  expect([refused.status, provider.jobs.size]).toEqual([429, 2]);
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'rate_limit_exceeded',
      message: expect.stringContaining('needs 4096 bytes, and 8192 are stored or reserved') as string,
    },
  });
  expect(await spine.balance()).toEqual(before);
  for (const job of provider.jobs.values()) job.status = 'completed';
  for (const id of ids) expect((await retrieve(id)).headers.get('content-type')).toBe('video/mp4');
  // They are smaller than that, so that there is room again.
  provider.begin(() => ({}));
  const { id } = (await (await queue()).json()) as Queued;
  expect((await retrieve(id)).headers.get('content-type')).toBe('video/mp4');
  expect(await spine.faults()).toEqual([]);
});

test('a video that fails makes room', async () => {
  const { provider, queue, retrieve, spine } = await startWorld(
    'free_bytes_min = 0\nfile_bytes_max = 4096\naccount_bytes_max = 4096',
  );
  provider.refuse((_request, response) => {
    response.writeHead(422, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
    return true;
  });
  expect((await queue()).status).toBe(422);
  provider.refuse(null);
  provider.begin(() => ({ status: 'failed' }));
  const { id } = (await (await queue()).json()) as Queued;
  expect(await (await retrieve(id)).json()).toMatchObject({ status: 'failed' });
  provider.begin(() => ({}));
  expect((await queue()).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
});

test('a provider that begins later than its lock lasts has no task, and is told', async () => {
  const { provider, spine, pass, queue } = await startWorld('free_bytes_min = 0');
  const before = await spine.balance();
  provider.refuse((_request, response) => {
    pass(HOUR_MS);
    void (async () => {
      while ((await spine.balance()).locked !== 0n) await setImmediate();
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"video_late"}');
    })();
    return true;
  });
  expect((await queue()).status).toBe(503);
  expect(provider.requests.some(({ method, path }) => method === 'DELETE' && path === '/v1/videos/video_late')).toBe(
    true,
  );
  expect(await (await spine.get('/videos')).json()).toMatchObject({ data: [] });
  expect(await spine.balance()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});

test('a disk that is nearly full refuses videos', async () => {
  const { queue } = await startWorld(`free_bytes_min = ${2 ** 49}`);
  expect((await queue()).status).toBe(503);
});
