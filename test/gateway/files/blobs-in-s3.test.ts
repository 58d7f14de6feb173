import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Blob, type Blobs, BlobUnreachable, createBlobs, openS3Files, removeOrphans, sourceOf } from '#files';
import { type OpenedEngine, openEngine } from '../../support/engines.ts';
import { type S3Server, startS3Server } from '../../support/s3-server.ts';

// The same files in a store that speaks S3: sent as they come, read in ranges, gone when they expire.

const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;
const LIMITS = {
  keepMs: 24 * HOUR_MS,
  bytesMax: 2 ** 40,
  accountBytesMax: 2 ** 40,
  fileBytesMax: 22 * MIB,
  freeBytesMin: 1,
};

let engine: OpenedEngine;
let server: S3Server;
beforeAll(async () => {
  engine = await openEngine('sqlite');
  server = await startS3Server();
});
afterAll(async () => {
  await server.stop();
  await engine.dispose();
});

const storeOf = (url: string) => ({ url, region: 'us-east-1', accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' });

async function openStore(url = server.url) {
  const files = await openS3Files(storeOf(url));
  let at = Date.now();
  const now = () => at;
  const blobs = createBlobs({ database: engine.database, files, far: null, limits: LIMITS, now });
  return { files, blobs, now, pass: (ms: number) => (at += ms) };
}

const put = (blobs: Blobs, source: string, chunks: readonly Buffer[]) =>
  blobs.write({ source, account: 'films' }, async (file) => {
    for (const chunk of chunks) {
      // The memory of a chunk is used again, as a download does.
      const lent = Buffer.from(chunk);
      await file.write(lent);
      lent.fill(0);
    }
    return { type: 'video/mp4', notes: '{}' };
  });
async function read(blobs: Blobs, blob: Blob, start = 0, end = blob.bytes - 1): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await blobs.read(blob, { start, end })) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

test('a small file is one object, and a large one is sent in parts', async () => {
  const { blobs, pass } = await openStore();
  const small = (await put(blobs, sourceOf('small'), [Buffer.from('a toll'), Buffer.from('gate')]))!;
  expect((await read(blobs, small)).toString()).toBe('a tollgate');
  expect((await read(blobs, small, 2, 5)).toString()).toBe('toll');

  const chunks = Array.from({ length: 41 }, () => randomBytes(512 * 1024));
  const large = (await put(blobs, sourceOf('large'), chunks))!;
  const whole = Buffer.concat(chunks);
  expect(large).toMatchObject({ bytes: whole.length, sha256: createHash('sha256').update(whole).digest('hex') });
  expect((await read(blobs, large)).equals(whole)).toBe(true);
  expect((await read(blobs, large, 9 * MIB, 17 * MIB)).equals(whole.subarray(9 * MIB, 17 * MIB + 1))).toBe(true);
  expect(server.keys().toSorted()).toEqual([small, large].map(({ id }) => `gate/${id.slice(0, 2)}/${id}`).toSorted());
  // A reader that leaves takes no more.
  const reader = await blobs.read(large, { start: 0, end: large.bytes - 1 });
  for await (const _ of reader) break;
  reader.destroy();

  pass(25 * HOUR_MS);
  expect(await blobs.sweep(100)).toBe(2);
  expect(server.keys()).toEqual([]);
});

test('another gateway of the bucket reads it, as its own', async () => {
  const [one, two] = [await openStore(), await openStore(`${server.url}/`)];
  expect(two.files.holder).toBe(one.files.holder);
  const blob = (await put(one.blobs, sourceOf('shared'), [Buffer.from('shared')]))!;
  expect((await read(two.blobs, blob)).toString()).toBe('shared');
  await one.files.remove(blob.id);
  await expect(two.blobs.read(blob, { start: 0, end: 1 })).rejects.toThrow('does not have the file');
});

test('a file that breaks off leaves nothing, and one that is too large is refused', async () => {
  const { blobs } = await openStore();
  const before = server.keys();
  const source = sourceOf('broken');
  await expect(
    blobs.write({ source, account: 'films' }, async (file) => {
      for (let part = 0; part < 2; part += 1) await file.write(randomBytes(9 * MIB));
      throw new Error('the provider left');
    }),
  ).rejects.toThrow('the provider left');
  await expect(
    put(
      blobs,
      source,
      Array.from({ length: 3 }, () => Buffer.alloc(8 * MIB)),
    ),
  ).rejects.toThrow('larger');
  expect(server.keys()).toEqual(before);
  expect(await blobs.find([source])).toEqual([]);
});

test('what no row names is removed after an hour, and what others keep in the bucket is not', async () => {
  const { files, now, pass } = await openStore();
  const other = await openS3Files(storeOf(server.url.replace(/gate$/, 'other')));
  for (const store of [files, other]) {
    const file = await store.create('ab'.repeat(16), MIB);
    await file.write(Buffer.from('orphan'));
    await file.finish();
  }
  expect(await removeOrphans({ database: engine.database, files, now })).toBe(0);
  pass(2 * HOUR_MS);
  expect(await removeOrphans({ database: engine.database, files, now })).toBeGreaterThan(0);
  expect(server.keys()).toEqual([`other/ab/${'ab'.repeat(16)}`]);
});

test('an address whose bucket cannot be listed is told so, because nothing in it would be removed', async () => {
  // The name of a bucket is in the path, not in the host. Files can be written at such an address nevertheless.
  const files = await openS3Files(storeOf(`${new URL(server.url).origin}/no-bucket/gate`));
  await expect(removeOrphans({ database: engine.database, files, now: Date.now })).rejects.toThrow(
    'the store of files has no bucket at this address',
  );
});

test('a store that is away is told so, and leaves no row; once it is back the file is written', async () => {
  const { blobs } = await openStore();
  const source = sourceOf('away');
  const there = (await put(blobs, sourceOf('there'), [Buffer.from('there')]))!;
  const away = await openStore('http://127.0.0.1:1/films');
  await expect(put(away.blobs, source, [Buffer.from('x')])).rejects.toThrow(BlobUnreachable);
  await expect(put(away.blobs, source, [randomBytes(9 * MIB)])).rejects.toThrow('cannot be reached');
  await expect(away.blobs.read({ ...there, holder: away.files.holder }, { start: 0, end: 1 })).rejects.toThrow(
    BlobUnreachable,
  );
  expect(await blobs.find([source])).toEqual([]);
  expect(await put(blobs, source, [Buffer.from('x')])).toMatchObject({ state: 'stored' });
});

test('errors of the store are tried again, and its refusals are named', async () => {
  const heard: string[] = [];
  let failing = 2;
  const broken = createServer((request, response) => {
    heard.push(request.method!);
    request.resume();
    if (request.url!.includes('denied'))
      return void response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>');
    if (failing-- > 0) return void response.writeHead(503).end();
    // It says that it has a file, and has another.
    response.writeHead(200, request.method === 'HEAD' ? { 'content-length': 3 } : {}).end();
  });
  broken.listen(0, '127.0.0.1');
  await once(broken, 'listening');
  onTestFinished(() => void broken.close());
  const base = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
  const lying = await openStore(`${base}/films`);
  await expect(put(lying.blobs, sourceOf('lying'), [Buffer.from('four')])).rejects.toThrow(
    'does not have what was sent',
  );
  expect(heard.slice(0, 4)).toEqual(['PUT', 'PUT', 'PUT', 'HEAD']);
  const denied = await openStore(`${base}/denied`);
  await expect(put(denied.blobs, sourceOf('denied'), [Buffer.from('x')])).rejects.toThrow('403 SignatureDoesNotMatch');
});

test('a store that answers a range with the whole file is not read as if it were the range', async () => {
  const whole = 'a tollgate';
  const deaf = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-length': whole.length }).end(request.method === 'HEAD' ? '' : whole);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    deaf.close();
    deaf.closeAllConnections();
  });
  await once(deaf, 'listening');
  const { files } = await openStore(`http://127.0.0.1:${(deaf.address() as AddressInfo).port}/films`);
  const textOf = async (start: number, end: number) => {
    let text = '';
    for await (const chunk of await files.read('ab'.repeat(16), { start, end })) text += Buffer.from(chunk).toString();
    return text;
  };
  expect(await textOf(0, whole.length - 1)).toBe(whole);
  for (const [start, end] of [
    [2, whole.length - 1],
    [0, 3],
    [2, 5],
  ] as const)
    await expect(textOf(start, end)).rejects.toThrow('ignores ranges');
});
