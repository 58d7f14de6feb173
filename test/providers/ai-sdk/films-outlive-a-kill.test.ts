import { expect, onTestFinished, test } from 'vitest';
import type { Queued } from '../../media/support/video-provider.ts';
import { startGateway } from '../../support/gateway.ts';
import { children } from '../../support/process-tree.ts';
import { FILM, FILM_VENDORS, filmBlock, PROMPT, type Studio } from './support/film-vendors.ts';
import { startVendor } from './support/scene.ts';

// The process of a package ends, and the gateway after it, while a video is made. Its job is in neither of them.

const VENDOR = FILM_VENDORS.find(({ name }) => name === 'google')!;

test('a package and its gateway are killed while a video is made: one job, one charge', async () => {
  const studio: Studio = { state: 'runs' };
  const vendor = await startVendor((request) => VENDOR.answer(request, studio));
  const gateway = await startGateway({
    toml: `[media]\nfree_bytes_min = 0\n${filmBlock(VENDOR, vendor.url, 'TEST_FILM_KEY')}`,
    env: { TEST_FILM_KEY: 'apiKey-secret' },
  });
  onTestFinished(() => gateway.stop());
  const owner = await gateway.openAccount('films', 10);
  const post = (path: string, body: object) =>
    fetch(`${gateway.baseUrl}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const asked = () => vendor.asked.filter(({ method }) => method === 'GET').length;
  /** Waits until the vendor is asked for the state of the job. */
  const seen = async (id: string) => {
    const before = asked();
    const look = async () => (await post('/video/retrieve', { task_id: id })).ok && asked() > before;
    await expect.poll(look, { timeout: 60_000, interval: 100 }).toBe(true);
  };

  const queued = await post('/video/queue', { model: 'google/film', prompt: PROMPT, duration: '4s' });
  const { id } = (await queued.json()) as Queued;
  await seen(id);
  const packages = children(gateway.pid);
  expect(packages).toHaveLength(1);
  process.kill(packages[0]!, 'SIGKILL');
  await seen(id);
  expect(children(gateway.pid)).not.toEqual(packages);

  await gateway.kill9();
  studio.state = 'done';
  await gateway.restart();
  const made = async () => {
    const response = await post('/video/retrieve', { task_id: id, wait_for_final: true });
    return response.headers.get('content-type') === 'video/mp4' ? Buffer.from(await response.arrayBuffer()) : null;
  };
  await expect.poll(made, { timeout: 60_000, interval: 200 }).toEqual(FILM);
  expect(vendor.asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
  const report = await gateway.admin('GET', '/audit');
  expect(report).toMatchObject({ data: { ok: true, totals: { charged: 450_000, locksHeld: 0 } } });
});
