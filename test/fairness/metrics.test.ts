import { afterAll, beforeAll, expect, it } from 'vitest';
import { shareText } from '#observe';
import { startSpine, type Spine } from '../support/spine.ts';

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine();
});
afterAll(() => spine?.stop());

const scrape = (authorization?: string) =>
  fetch(`${spine.origin}/metrics`, authorization === undefined ? {} : { headers: { authorization } });

it('whoever has no admin key costs no rendering of the metrics', async () => {
  for (const answer of [await scrape(), await scrape('Bearer svc-admin-wrong'), await scrape(`Bearer ${spine.key}`)]) {
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ error: { type: 'unauthorized' } });
  }
  expect((await scrape(`Bearer ${spine.adminKey}`)).status).toBe(200);
});

it('many scrapes at once, and those of the next second, get one rendering', async () => {
  let made = 0;
  const text = shareText(async () => `rendering ${++made}`);
  expect(await Promise.all(Array.from({ length: 8 }, () => text()))).toEqual(
    Array.from({ length: 8 }, () => 'rendering 1'),
  );
  expect(await text()).toBe('rendering 1');
});

it('a rendering that fails is not kept', async () => {
  let fails = true;
  const text = shareText(async () => {
    if (fails) throw new Error('no figures');
    return 'figures';
  });
  await expect(text()).rejects.toThrow('no figures');
  fails = false;
  expect(await text()).toBe('figures');
});
