import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { answerWith, imageBlock, type ImageProvider, json, png, startImageProvider } from './support/image-provider.ts';

// A repeat of a request gets the same images, however large they are, and costs nothing.

const MIB = 1024 * 1024;
const large = Buffer.concat([png(64, 64), randomBytes(1.5 * MIB)]);
const dataDir = newDataDirectory();
let provider: ImageProvider;
let spine: Spine;
const start = (media: string) =>
  startSpine({
    dataDir,
    toml: `${UNHURRIED}[media]\nfree_bytes_min = 1\n${media}${imageBlock({ url: provider.url, lines: 'supported_params = ["stream"]' })}`,
  });
beforeAll(async () => {
  provider = await startImageProvider();
  provider.answer(answerWith({ b64_json: large.toString('base64') }));
  spine = await start('');
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const ask = { model: 'test/paint', prompt: 'A tollgate' };
const send = async (path: string, more: object, key: string, authorization = `Bearer ${spine.key}`) => {
  const response = await spine.post(path, { ...ask, ...more }, { 'idempotency-key': key, authorization });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
};
/** Headers of an answer that a repeat has, too. */
const headOf = ({ headers }: Response) =>
  ['content-type', 'content-length', 'x-generation-id', 'x-cost-usd', 'content-disposition'].map((name) =>
    headers.get(name),
  );

test.each([
  ['/image/generate', {}],
  ['/images/generations', { response_format: 'b64_json' }],
  ['/image/generate', { output_type: 'file' }],
])('%s of %j is repeated byte for byte', async (path, more) => {
  const key = `${path} ${JSON.stringify(more)}`;
  const first = await send(path, more, key);
  expect([first.response.status, first.bytes.length > 1.5 * MIB]).toEqual([200, true]);
  const [asked, before] = [provider.requests.length, await spine.balance()];
  const again = await send(path, more, key);
  expect(again.response.headers.get('idempotent-replayed')).toBe('true');
  expect(headOf(again.response)).toEqual(headOf(first.response));
  expect(again.bytes.equals(first.bytes)).toBe(true);
  expect([provider.requests.length, await spine.balance()]).toEqual([asked, before]);
  // Another body is another request, and another account has keys of its own.
  expect((await send(path, { ...more, n: 1 }, key)).response.status).toBe(409);
  const { key: other } = await spine.tenant(`other-${randomBytes(4).toString('hex')}`, '1');
  expect((await send(path, more, key, `Bearer ${other}`)).response.headers.get('idempotent-replayed')).toBeNull();
  expect(await spine.faults()).toEqual([]);
});

test('a stream is repeated, too', async () => {
  provider.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const event = { type: 'image_generation.completed', b64_json: large.toString('base64') };
    response.end(`event: image_generation.completed\ndata: ${JSON.stringify(event)}\n\n`);
  });
  const first = await send('/image/generate', { stream: true }, 'streamed');
  const again = await send('/image/generate', { stream: true }, 'streamed');
  expect(again.response.headers.get('idempotent-replayed')).toBe('true');
  expect(again.bytes.equals(first.bytes)).toBe(true);
  provider.answer(answerWith({ b64_json: large.toString('base64') }));
});

test('it outlives its gateway; without room for it a repeat is refused, and costs nothing', async () => {
  const first = await send('/image/generate', {}, 'outlives');
  await spine.stop();
  spine = await start('file_bytes_max = 1258291\n');
  const again = await send('/image/generate', {}, 'outlives');
  expect(again.bytes.equals(first.bytes)).toBe(true);
  expect((await send('/image/generate', {}, 'no room')).response.status).toBe(200);
  const [asked, before] = [provider.requests.length, await spine.balance()];
  expect((await send('/image/generate', {}, 'no room')).response.status).toBe(409);
  expect([provider.requests.length, await spine.balance()]).toEqual([asked, before]);
  // A reply of nothing costs nothing, and is not kept.
  provider.answer((_request, response) => json(response, 500, {}));
  expect((await send('/image/generate', {}, 'failed')).response.status).toBe(500);
  expect(await spine.faults()).toEqual([]);
});

test('an answer that is larger than the largest file, but fits the database, is repeated whole', async () => {
  const other = newDataDirectory();
  const small = Buffer.concat([png(64, 64), randomBytes(9_660)])
    .subarray(0, 9_660)
    .toString('base64');
  const streamed = await startSpine({
    dataDir: other,
    toml: `${UNHURRIED}[upstream]\nimages_reply_bytes_max = 13000\n${imageBlock({ url: provider.url })}`,
  });
  onTestFinished(async () => {
    await streamed.stop();
    rmSync(other, { recursive: true, force: true });
  });
  provider.answer((_request, response) => json(response, 200, { data: [{ b64_json: small }] }));
  const paint = async () => {
    const response = await streamed.post('/image/generate', ask, { 'idempotency-key': 'small' });
    return [response.status, await response.text()] as const;
  };
  const [status, first] = await paint();
  expect([status, first.length > 13_000]).toEqual([200, true]);
  expect(await paint()).toEqual([200, first]);
  expect(await streamed.faults()).toEqual([]);
});
