import { afterEach, beforeAll, expect, test } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import { UNHURRIED } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

const provider = ofFile(startVideoProvider, (one) => one.close());
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${videoBlock({ url: provider.url })}`,
}));
beforeAll(() => {
  provider.begin(() => ({}));
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

async function queued(headers: Record<string, string>): Promise<Queued> {
  const body = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
  return (await (await spine.post('/video/queue', body, headers)).json()) as Queued;
}

const retrieve = (id: string, more: object, headers: Record<string, string>) =>
  spine.post('/video/retrieve', { task_id: id, ...more }, headers);

const final = (id: string, headers: Record<string, string>) => retrieve(id, { wait_for_final: true }, headers);

async function keyWith(fields: Partial<NewKeyFields>) {
  const made = await spine.app.keys.create({ account: spine.account, label: 'restricted', kind: 'live', ...fields });
  return { headers: { authorization: `Bearer ${made!.text}` }, hash: made!.record.hash };
}

test('a key that may no longer use the service is refused, also for its own video', async () => {
  const { headers, hash } = await keyWith({ allowedServices: ['test/film'] });
  const { id } = await queued(headers);
  await (await final(id, headers)).arrayBuffer();
  await spine.app.keys.update(spine.account, hash, { allowedServices: ['test/other'] });
  expect((await retrieve(id, {}, headers)).status).toBe(403);
  expect((await spine.get(`/videos/${id}/content`, headers)).status).toBe(403);
  expect(((await (await spine.get('/videos', headers)).json()) as { data: unknown[] }).data).toEqual([]);
});

test('a restricted key neither sees, cancels nor deletes the videos of other keys; the account sees its videos', async () => {
  const { headers: one } = await keyWith({ limit: 10_000_000n });
  const { headers: other } = await keyWith({ allowedServices: ['test/film'] });
  const { id } = await queued(one);
  for (const asked of [
    () => retrieve(id, {}, other),
    () => spine.post('/video/cancel', { task_id: id }, other),
    () => spine.get(`/videos/${id}`, other),
    () => spine.get(`/videos/${id}/content`, other),
    () => fetch(`${spine.url}/videos/${id}`, { method: 'DELETE', headers: other }),
  ])
    expect((await asked()).status).toBe(404);
  const listed = async (headers: Record<string, string>) =>
    ((await (await spine.get('/videos', headers)).json()) as { data: { id: string }[] }).data.map((video) => video.id);
  expect([(await listed(one)).length, (await listed(other)).length, (await listed({})).includes(id)]).toEqual([
    1,
    0,
    true,
  ]);
  await (await final(id, one)).arrayBuffer();
  expect((await spine.get(`/videos/${id}/content`)).status).toBe(200);
});
