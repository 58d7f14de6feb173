import { Uint8ArrayReader, Uint8ArrayWriter, ZipReader } from '@zip.js/zip.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { png } from './support/image-provider.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// The life of a video: queued, looked at, fetched, given out, and charged when it is here.

const LISTED =
  'durations = ["4s"]\naspect_ratios = ["16:9", "9:16"]\nsupported_params = ["seed", "negative_prompt", "generate_audio", "frame_rate", "image_url", "camera_fixed", "camera_motion", "end_image", "reference_images", "video_reference", "audio_reference"]';

const INSIDE = 'http://169.254.169.254/latest';
const LISTS = { model: 'test/listed' };
const PNG = png(64, 64);

/** Milliseconds that have passed for the gateway alone. */
let passed = 0;
const provider = ofFile(startVideoProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  return {
    elapsed: () => performance.now() + passed,
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 1\n[media]\nfree_bytes_min = 0\n` +
      videoBlock({ url }) +
      videoBlock({ url, name: 'test/listed', lines: LISTED }),
  };
});
beforeEach(() => {
  provider.begin(() => ({}));
  provider.refuse(null);
  provider.cancels = true;
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const ask = (more: object = {}) => ({ model: 'test/film', prompt: 'A tollgate', duration: '4s', ...more });

async function queued(body: object, headers: Record<string, string> = {}): Promise<Queued> {
  const response = await spine.post('/video/queue', body, headers);
  const text = await response.text();
  expect(`${response.status} ${text}`).toMatch(/^200 /);
  return JSON.parse(text) as Queued;
}

const retrieve = (id: string, more: object = {}, headers: Record<string, string> = {}) =>
  spine.post('/video/retrieve', { task_id: id, ...more }, headers);

/** The answer to a retrieve once the task is over. */
const final = (id: string, headers: Record<string, string> = {}) => retrieve(id, { wait_for_final: true }, headers);

async function refusal(path: string, body: unknown) {
  const response = await spine.post(path, body);
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string | null } };
  return { status: response.status, code: error.code, message: error.message, param: error.param };
}

const sent = () => provider.requests.findLast(({ method }) => method === 'POST')!.body;

test('a video is queued, fetched and given out, and costs its seconds and its base price', async () => {
  const before = await spine.balance();
  const task = await queued(ask({ seed: 7 }));
  expect(task).toEqual({
    id: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{32,44}:[\w-]+$/) as string,
    created: expect.any(Number) as number,
    status: 'queued',
    variants_expected: 1,
  });
  expect(await spine.balance()).toEqual({ available: before.available - 450_000n, locked: 450_000n });
  const response = await final(task.id);
  const job = provider.last();
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'video/mp4',
    'content-length': String(job.file.length),
    'accept-ranges': 'bytes',
    'x-task-status': 'completed',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  expect(Buffer.from(await response.arrayBuffer())).toEqual(job.file);
  const after = await spine.balance();
  expect([before.available - after.available, after.locked]).toEqual([450_000n, 0n]);
  expect(sent()).toEqual({
    model: 'upstream-film',
    prompt: 'A tollgate',
    seconds: '4',
    size: '1280x720',
    seed: 7,
  });
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 450_000,
  });
});

test('states go forward, with the progress that the provider tells', async () => {
  provider.begin(() => ({ status: 'queued' }));
  const { id } = await queued(ask());
  const first = (await (await retrieve(id)).json()) as { status: string; progress: number };
  expect(first).toMatchObject({ id, status: 'queued', estimated_seconds: expect.any(Number) as number });
  Object.assign(provider.last(), { status: 'in_progress', progress: 40 });
  await expect
    .poll(async () => (await retrieve(id)).json(), { timeout: 60_000, interval: 300 })
    .toMatchObject({
      status: 'generating',
      progress: 40,
      provider_metadata: { provider: 'Filmer', raw: { status: 'in_progress' } },
    });
  // Not the minute that is told where nothing is known.
  expect(((await (await retrieve(id)).json()) as { estimated_seconds: number }).estimated_seconds).toBeLessThan(45);
  Object.assign(provider.last(), { status: 'queued' });
  Object.assign(provider.last(), { status: 'completed' });
  const { headers } = await final(id);
  expect(headers.get('content-type')).toBe('video/mp4');
  expect(Number(headers.get('x-ratelimit-limit-requests'))).toBeGreaterThan(0);
});

test('a video that fails is free, and says why', async () => {
  const before = await spine.balance();
  provider.begin(() => ({ status: 'failed', error: { code: 'content_policy', message: 'No tollgates' } }));
  const { id } = await queued(ask());
  const response = await final(id);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    id,
    status: 'failed',
    error: { code: 'content_policy', message: 'No tollgates' },
  });
  expect(await spine.balance()).toEqual(before);
});

test('several variants come as a ZIP archive whose length is known', async () => {
  const before = await spine.balance();
  let made = 0;
  provider.begin((seconds) => ({ file: tinyMp4(seconds, 2_000, ++made) }));
  const task = await queued(ask({ n: 2 }));
  expect(task.variants_expected).toBe(2);
  const response = await final(task.id);
  expect(response.headers.get('content-type')).toBe('application/zip');
  const zip = Buffer.from(await response.arrayBuffer());
  expect(response.headers.get('content-length')).toBe(String(zip.length));
  expect(zip.indexOf(tinyMp4(4, 2_000, 1))).toBeGreaterThan(0);
  expect(zip.indexOf(tinyMp4(4, 2_000, 2))).toBeGreaterThan(0);
  expect(zip.includes('variant_1.mp4')).toBe(true);
  // An independent reader checks every checksum, and throws what is wrong with the archive.
  const reader = new ZipReader(new Uint8ArrayReader(zip), { checkSignature: true, checkOverlappingEntry: true });
  const files = await Promise.all(
    (await reader.getEntries()).map(async (entry) => ({
      name: entry.filename,
      bytes: entry.directory ? null : Buffer.from(await entry.getData(new Uint8ArrayWriter())),
    })),
  );
  expect(files).toEqual([
    { name: 'variant_0.mp4', bytes: tinyMp4(4, 2_000, 1) },
    { name: 'variant_1.mp4', bytes: tinyMp4(4, 2_000, 2) },
  ]);
  const etag = response.headers.get('etag')!;
  const part = await final(task.id, { range: `bytes=100-${zip.length - 1}`, 'if-range': etag });
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 100-${zip.length - 1}/${zip.length}`]);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(zip.subarray(100));
  expect(before.available - (await spine.balance()).available).toBe(900_000n);
});

test('a variant that fails is not charged', async () => {
  const before = await spine.balance();
  let made = 0;
  provider.begin(() => ({ status: ++made === 1 ? 'failed' : 'completed' }));
  const { id } = await queued(ask({ n: 2 }));
  const response = await final(id);
  expect(response.headers.get('content-type')).toBe('application/zip');
  const zip = new Uint8Array(await response.arrayBuffer());
  const entries = await new ZipReader(new Uint8ArrayReader(zip), { checkSignature: true }).getEntries();
  expect(entries.map(({ filename }) => filename)).toEqual(['variant_0.mp4']);
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
});

test('ranges of a file', async () => {
  const { id } = await queued(ask());
  const whole = Buffer.from(await (await final(id)).arrayBuffer());
  const { length } = whole;
  for (const [range, status, bytes] of [
    ['bytes=0-9', 206, whole.subarray(0, 10)],
    ['bytes=10-', 206, whole.subarray(10)],
    ['bytes=-5', 206, whole.subarray(length - 5)],
    [`bytes=0-${length * 2}`, 206, whole],
    ['bytes=0-1,5-6', 200, whole],
    ['lines=1-2', 200, whole],
    [`bytes=${length}-`, 416, Buffer.alloc(0)],
  ] as const) {
    const response = await retrieve(id, {}, { range });
    expect([range, response.status, Buffer.from(await response.arrayBuffer()).equals(bytes)]).toEqual([
      range,
      status,
      true,
    ]);
  }
  const other = await retrieve(id, {}, { range: 'bytes=0-9', 'if-range': '"another"' });
  expect([other.status, (await other.arrayBuffer()).byteLength]).toEqual([200, length]);
});

test('a file that is shorter than it said, or no MP4, is never given out and never charged', async () => {
  const before = await spine.balance();
  const file = tinyMp4(4);
  provider.begin(() => ({
    serve: (_request, response) => response.writeHead(200, { 'content-type': 'video/mp4' }).end(file.subarray(0, 500)),
  }));
  const { id } = await queued(ask());
  const job = provider.last();
  const tries = () => provider.requests.filter(({ path }) => path === `/v1/videos/${job.id}/content`).length;
  const looked = async (count: number) => {
    passed += 60_000;
    await expect
      .poll(
        async () => {
          expect(await (await retrieve(id)).json()).toMatchObject({
            status: expect.stringMatching(/queued|generating/) as string,
          });
          return tries();
        },
        { timeout: 60_000, interval: 300 },
      )
      .toBeGreaterThanOrEqual(count);
  };
  await looked(1);
  job.serve = (_request, response) =>
    response.writeHead(200, { 'content-type': 'video/mp4' }).end('<html><script>alert(1)</script></html>');
  await looked(2);
  expect((await spine.balance()).locked).toBe(450_000n);
  job.serve = null;
  passed += 60_000;
  expect(Buffer.from(await (await final(id)).arrayBuffer())).toEqual(file);
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
});

test('a file that is broken each time it is fetched fails the task, free of charge', async () => {
  const before = await spine.balance();
  provider.begin(() => ({
    serve: (_request, response) => response.writeHead(200, { 'content-type': 'video/mp4' }).end('<html>no film</html>'),
  }));
  const { id } = await queued(ask());
  const job = provider.last();
  const tries = () => provider.requests.filter(({ path }) => path === `/v1/videos/${job.id}/content`).length;
  const ended = final(id);
  const triesLater = () => {
    passed += 60_000;
    return tries();
  };
  await expect.poll(triesLater, { timeout: 60_000, interval: 200 }).toBe(3);
  expect(await (await ended).json()).toMatchObject({
    status: 'failed',
    error: { code: 'broken_file', message: expect.stringContaining('does not begin like an MP4 file') as string },
  });
  expect(await spine.balance()).toEqual(before);
  expect(tries()).toBe(3);
});

test('pictures of some megabytes come as JSON and as a form, with their length in the head or without', async () => {
  const picture = Buffer.alloc(1_500_000);
  Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001', 'hex').copy(picture);
  const body = JSON.stringify(
    ask({ model: 'test/listed', image_url: `data:image/png;base64,${picture.toString('base64')}` }),
  );
  const post = (init: object) =>
    fetch(`${spine.url}/video/queue`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      ...init,
    });
  expect((await post({ body })).status).toBe(200);
  expect((await post({ body: new Blob([body]).stream(), duplex: 'half' })).status).toBe(200);
  const form = new FormData();
  for (const [name, value] of Object.entries({ model: 'test/listed', prompt: 'A', seconds: '4' }))
    form.set(name, value);
  form.set('input_reference', new File([picture], 'a.png', { type: 'image/png' }));
  const headers = { authorization: `Bearer ${spine.key}` };
  const answer = await fetch(`${spine.url}/videos`, { method: 'POST', headers, body: form });
  expect(`${answer.status} ${await answer.text()}`).toMatch(/^200 /);
  const large = await post({ body: ' '.repeat(33 * 1024 * 1024) });
  expect([large.status, ((await large.json()) as { error: { message: string } }).error.message]).toEqual([
    413,
    expect.stringContaining('limits.media_body_bytes_max'),
  ]);
});

test('a video that is much shorter than what was asked for is charged as it is', async () => {
  const before = await spine.balance();
  provider.begin(() => ({ file: tinyMp4(2.2) }));
  const { id } = await queued(ask());
  await (await final(id)).arrayBuffer();
  expect(before.available - (await spine.balance()).available).toBe(350_000n);
});

test('it can be cancelled, and costs nothing then', async () => {
  const before = await spine.balance();
  provider.begin(() => ({ status: 'in_progress' }));
  const { id } = await queued(ask());
  provider.cancels = false;
  expect(await refusal('/video/cancel', { task_id: id })).toMatchObject({ status: 422, code: 'unprocessable' });
  provider.cancels = true;
  expect(await (await spine.post('/video/cancel', { task_id: id })).json()).toMatchObject({
    status: 'failed',
    error: { code: 'cancelled' },
  });
  expect(provider.last().cancelled).toBe(true);
  expect(await spine.balance()).toEqual(before);
  expect(await (await retrieve(id)).json()).toMatchObject({ status: 'failed', error: { code: 'cancelled' } });
});

test('of two that cancel it at once, both hear that it is cancelled', async () => {
  const before = await spine.balance();
  provider.begin(() => ({ status: 'in_progress' }));
  const { id } = await queued(ask());
  const answers = await Promise.all([1, 2, 3].map(() => spine.post('/video/cancel', { task_id: id })));
  for (const answer of answers)
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { status: 'failed', error: { code: 'cancelled' } },
    ]);
  expect(await spine.balance()).toEqual(before);
});

test('of three that delete it at once, one does, and the others hear that it is gone', async () => {
  provider.begin(() => ({ status: 'in_progress' }));
  const { id } = await queued(ask());
  const own = { method: 'DELETE', headers: { authorization: `Bearer ${spine.key}` } };
  const remove = async () => (await fetch(`${spine.url}/videos/${id}`, own)).status;
  const statuses = await Promise.all([remove(), remove(), remove()]);
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1);
  expect(statuses.filter((status) => status !== 200 && status !== 404)).toEqual([]);
  expect(await remove()).toBe(404);
});

test('another account does not see it', async () => {
  const { id } = await queued(ask());
  const other = await spine.tenant('other-of-video', '1');
  const headers = { authorization: `Bearer ${other.key}` };
  for (const path of ['/video/retrieve', '/video/cancel']) {
    const response = await spine.post(path, { task_id: id }, headers);
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
      404,
      'not_found',
    ]);
  }
  const foreign = id.replace(/^[^:]+/, 'So11111111111111111111111111111111111111112');
  for (const wrong of [foreign, 'nonsense', `${id}x`, 'a:b'])
    expect(await refusal('/video/retrieve', { task_id: wrong })).toMatchObject({ status: 404, code: 'not_found' });
  await (await final(id)).arrayBuffer();
});

test('a repeat with the same key is the same task', async () => {
  const headers = { 'idempotency-key': 'one-video' };
  const made = provider.jobs.size;
  const first = await queued(ask(), headers);
  const again = await spine.post('/video/queue', ask(), headers);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(((await again.json()) as Queued).id).toBe(first.id);
  expect(provider.jobs.size).toBe(made + 1);
  await (await final(first.id)).arrayBuffer();
});

test.each([
  ['the usual size', {}, 450_000n, { seconds: '4', size: '1280x720' }],
  ['a length', { duration: 8 }, 850_000n, { seconds: '8', size: '1280x720' }],
  ['a resolution', { resolution: '1080p' }, 850_000n, { seconds: '4', size: '1920x1080' }],
  ['a ratio', { aspect_ratio: '9:16' }, 450_000n, { seconds: '4', size: '720x1280' }],
  ['a size', { size: '1792x1024' }, 850_000n, { seconds: '4', size: '1792x1024' }],
])('the price of %s is known before the call', async (_what, more, price, fields) => {
  const before = await spine.balance();
  const { id } = await queued(ask(more));
  expect(before.available - (await spine.balance()).available).toBe(price);
  await (await final(id)).arrayBuffer();
  expect(before.available - (await spine.balance()).available).toBe(price);
  expect(sent()).toMatchObject(fields);
});

test('sound costs its multiple', async () => {
  const before = await spine.balance();
  const { id } = await queued(ask({ model: 'test/listed', generate_audio: true }));
  await (await final(id)).arrayBuffer();
  expect(before.available - (await spine.balance()).available).toBe(850_000n);
  expect(sent()['generate_audio']).toBe(true);
});

test.each([
  ['a length that is not made', { duration: '5s' }, 422, 'duration'],
  ['a resolution that is not made', { resolution: '480p' }, 422, 'resolution'],
  ['a resolution of no kind', { resolution: '2K' }, 400, 'resolution'],
  ['a field that is not taken', { camera_fixed: true }, 422, 'camera_fixed'],
  ['sound where there is none', { generate_audio: true }, 422, 'generate_audio'],
  ['too many variants', { n: 5 }, 422, 'n'],
  ['no variant', { n: 0 }, 400, 'n'],
  ['another name of the number', { num_videos: 2 }, 400, 'num_videos'],
  ['neither a prompt nor a picture', { prompt: '' }, 400, 'prompt'],
  ['no length', { duration: undefined }, 400, 'duration'],
  ['an empty length', { duration: null }, 400, 'duration'],
  ['a length of no kind', { duration: 'long' }, 400, 'duration'],
  ['an address that is not public', { image_url: 'https://127.0.0.1/a.png' }, 400, 'image_url'],
  ['an address without TLS', { image_url: 'http://example.com/a.png' }, 400, 'image_url'],
  ['a data URL of another kind', { image_url: `data:image/png;base64,${btoa('<svg>')}aa` }, 400, 'image_url'],
  ['a last frame inside', { ...LISTS, end_image: INSIDE }, 400, 'end_image_url'],
  ['references that are no list', { ...LISTS, reference_images: INSIDE }, 400, 'reference_image_urls'],
  ['a reference inside', { ...LISTS, reference_images: [INSIDE] }, 400, 'reference_image_urls[0]'],
  ['a video inside', { ...LISTS, video_reference: INSIDE }, 400, 'video_url'],
  ['sound inside', { ...LISTS, audio_reference: INSIDE }, 400, 'audio_url'],
  ['a data URL of many parameters', { image_url: `data:${';a'.repeat(6_000_000)}` }, 400, 'image_url'],
  ['text that is no base64', { image_url: { b64: 'Ł'.repeat(4) } }, 400, 'image_url'],
  ['too many references', { reference_image_urls: ['a', 'b', 'c', 'd', 'e'] }, 400, 'reference_image_urls'],
  ['long metadata', { metadata: { a: 'x'.repeat(4_096) } }, 400, 'metadata'],
  ['a cap below its price', { max_cost: 0.01 }, 422, null],
])('%s is refused before anything is locked', async (_what, more, status, param) => {
  const before = await spine.balance();
  const made = provider.jobs.size;
  const error = await refusal('/video/queue', ask(more));
  expect(error).toMatchObject({ status, ...(param === null ? {} : { param }) });
  expect([await spine.balance(), provider.jobs.size]).toEqual([before, made]);
});

test('a picture goes as a file of a form, an address as it is', async () => {
  const one = await queued(
    ask({ prompt: undefined, image_url: { b64: `data:image/png;base64,${PNG.toString('base64')}` } }),
  );
  expect(sent()).toMatchObject({ input_reference: `<image/png, ${PNG.length}>`, seconds: '4' });
  await (await final(one.id)).arrayBuffer();
  const two = await queued(ask({ image_url: 'https://pictures.example/a.png' }));
  expect(sent()).toMatchObject({ input_reference: { image_url: 'https://pictures.example/a.png' } });
  await (await final(two.id)).arrayBuffer();
});

test('an API that reads only forms is sent a form', async () => {
  provider.refuse(({ headers }, response) => {
    if (headers['content-type']?.startsWith('multipart/')) return false;
    response.writeHead(422, { 'content-type': 'application/json' }).end('{"detail":"Field required"}');
    return true;
  });
  const { id } = await queued(ask({ seed: 3 }));
  expect(sent()).toMatchObject({ prompt: 'A tollgate', seconds: '4', seed: '3' });
  await (await final(id)).arrayBuffer();
});

test.each([
  ['what looks like a file', { file: { type: 'a/b', bytes: 3_000_000 } }],
  ['what looks like an address', { file: null, url: 'https://pictures.example/a.png' }],
  ['an object', { type: 'pan' }],
  ['a list', [{ type: 'pan' }]],
  ['a list of nothing', [null]],
])('%s in a field of the provider goes as it is', async (_what, value) => {
  const asked = ask({ model: 'test/listed', camera_motion: value });
  const { id } = await queued(asked);
  expect(sent()['camera_motion']).toEqual(value);
  await (await final(id)).arrayBuffer();
  const picture = `data:;base64,${PNG.toString('base64')}`;
  const withFile = await queued({ ...asked, image_url: picture });
  expect(sent()).toMatchObject({ camera_motion: JSON.stringify(value), input_reference: `<image/png, ${PNG.length}>` });
  await (await final(withFile.id)).arrayBuffer();
});

test('a provider that refuses the request is heard, and nothing is charged', async () => {
  const before = await spine.balance();
  provider.refuse((_request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"not this prompt"}}');
    return true;
  });
  expect(await refusal('/video/queue', ask())).toMatchObject({
    status: 400,
    message: expect.stringContaining('not this prompt') as string,
  });
  expect(await spine.balance()).toEqual(before);
});
