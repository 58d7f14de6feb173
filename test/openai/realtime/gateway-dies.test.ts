import { expect, onTestFinished, test } from 'vitest';
import { anyProvider } from '../../support/any-provider.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRealtime } from './support/realtime-client.ts';
import { startRealtimeProvider, usage } from './support/realtime-provider.ts';
import { voiceBlock } from './support/voice-gateway.ts';

test("a gateway that is killed in a response keeps nobody's money, and what was settled before", async () => {
  const provider = await startRealtimeProvider();
  onTestFinished(() => provider.stop());
  const gateway = await startGateway({
    toml: voiceBlock(provider.url),
    env: { TEST_UPSTREAM_KEY: 'upstream-secret-canary', ...anyProvider() },
  });
  onTestFinished(() => gateway.stop());
  const { key } = await gateway.openAccount('voices', 10);
  const url = `${gateway.baseUrl.replace('http', 'ws')}/v1/realtime?model=voice`;
  const open = () => Promise.all([openRealtime(url, key), provider.session()]);
  const [client, side] = await open();
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.say('resp_1', 'hello', usage(100, 20));
  // 100 × 4 + 20 × 16
  expect((await client.done()).usage.cost).toBe(0.00072);
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.begin('resp_2');
  side.send({ type: 'response.output_text.delta', response_id: 'resp_2', delta: 'hel' });
  await client.take('response.output_text.delta');
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true, totals: { locksHeld: 1 } } });

  await gateway.kill9();
  expect((await client.closed).code).toBe(1006);
  // The session at the provider ends with the gateway, so nothing more is made there.
  await side.closed;
  await gateway.restart();
  expect(await gateway.admin('GET', '/audit')).toMatchObject({
    data: { ok: true, totals: { charged: 720, locksHeld: 0 } },
  });
  const [again] = await open();
  await again.take('session.created');
  again.socket.close();
  await again.closed;
});
