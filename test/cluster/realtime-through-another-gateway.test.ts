import { expect, inject, onTestFinished, test } from 'vitest';
import { reachable, startCluster } from '../support/cluster.ts';
import { dialIn } from '../support/dial-in.ts';
import { UNHURRIED } from '../support/spine.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startRealtimeProvider, usage } from '../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../openai/realtime/support/voice-gateway.ts';

test('a session reaches a proxy that is connected to another gateway, and ends with it', async () => {
  const provider = await startRealtimeProvider();
  onTestFinished(() => provider.stop());
  const toml = `${UNHURRIED}[billing]\ndrain_ms = 2000\n`;
  const cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
  onTestFinished(() => cluster.stop());
  const [one, other] = cluster.gateways;
  const proxy = await dialIn({ router: one!.origin, services: voiceBlock(provider.url) });
  onTestFinished(() => proxy.kill());
  await reachable([other!.origin], 'voice');
  const { key } = await other!.tenant('far', '10');
  const url = `${other!.origin.replace('http', 'ws')}/v1/realtime?model=voice`;
  const [client, side] = await Promise.all([openRealtime(url, key), provider.session()]);
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.say('resp_1', 'x'.repeat(400), usage(8, 100));
  // 8 × 4 + 100 × 16
  expect((await client.done()).usage.cost).toBe(0.001632);
  // The connection between the gateways carries large events, too.
  const sound = Buffer.alloc(2_000_000).toString('base64');
  client.send({ type: 'input_audio_buffer.append', audio: sound });
  expect((await side.take('input_audio_buffer.append'))['audio'] === sound).toBe(true);

  proxy.kill();
  expect(await client.take('error')).toMatchObject({ error: { code: 'provider_unavailable' } });
  expect((await client.closed).code).toBe(1011);
  await side.closed;
  expect(await other!.faults()).toEqual([]);
});
