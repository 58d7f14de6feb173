import { expect, onTestFinished, test } from 'vitest';
import { startVideoProvider, videoBlock } from '../../../media/support/video-provider.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { startTunnelSpine } from '../../../support/tunnel-spine.ts';

const pricing = (perSecond: number) => `per_second = { "720p" = ${perSecond} }`;

test('a video goes to another provider if the first cannot send the request to its service', async () => {
  const videos = await startVideoProvider();
  onTestFinished(() => videos.close());
  const { spine, dialIn } = await startTunnelSpine(
    '[tunnel]\nshared_names = ["test/*"]\n[media]\nfree_bytes_min = 0\n',
  );
  const down = `http://127.0.0.1:${await findFreePort()}/v1`;
  await dialIn({ services: videoBlock({ url: down, provider: 'Down', pricing: pricing(0.1) }) });
  await dialIn({ services: videoBlock({ url: videos.url, provider: 'Up', pricing: pricing(0.2) }) });
  const response = await spine.post('/video/queue', {
    model: 'test/film',
    prompt: 'A tollgate',
    duration: '4s',
    provider: { order: ['Down', 'Up'] },
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { id } = JSON.parse(text) as { id: string };
  const typeNow = async () => {
    const answer = await spine.post('/video/retrieve', { task_id: id });
    await answer.arrayBuffer();
    return answer.headers.get('content-type');
  };
  await expect.poll(typeNow, { timeout: 60_000 }).toBe('video/mp4');
  expect(videos.jobs.size).toBe(1);
});
