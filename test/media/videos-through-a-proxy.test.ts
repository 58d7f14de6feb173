import { expect, onTestFinished, test } from 'vitest';
import { dialIn } from '../support/dial-in.ts';
import { startGateway } from '../support/gateway.ts';
import { DOMAIN } from '../support/wallets.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// A provider that dialled in: jobs, files and cancellations go through its tunnel, with its own key.

test('videos of a provider behind a proxy', async () => {
  const provider = await startVideoProvider();
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml: '[media]\nfree_bytes_min = 0\n[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n',
  });
  onTestFinished(() => gateway.stop());
  const proxy = await dialIn({ router: gateway.baseUrl, services: videoBlock({ url: provider.url }) });
  onTestFinished(() => proxy.kill());
  const owner = await gateway.openAccount('films', 10);
  const post = (path: string, body: object) =>
    fetch(`${gateway.baseUrl}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const queue = async () => {
    const response = await post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s' });
    expect(response.status).toBe(200);
    return ((await response.json()) as Queued).id;
  };
  const file = tinyMp4(4, 300_000);
  provider.begin(() => ({ file }));
  const done = await post('/video/retrieve', { task_id: await queue(), wait_for_final: true });
  expect(Buffer.from(await done.arrayBuffer()).equals(file)).toBe(true);
  expect(provider.requests.every(({ headers }) => headers.authorization === 'Bearer video-secret-canary')).toBe(true);

  provider.begin(() => ({ status: 'in_progress' }));
  const cancelled = await post('/video/cancel', { task_id: await queue() });
  expect(await cancelled.json()).toMatchObject({ status: 'failed', error: { code: 'cancelled' } });
  expect(provider.last().cancelled).toBe(true);
  expect(await gateway.admin('GET', '/audit')).toMatchObject({
    data: { ok: true, totals: { charged: 450_000, locksHeld: 0 } },
  });
});
