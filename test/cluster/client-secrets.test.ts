import { expect, inject, onTestFinished, test } from 'vitest';
import { startCluster, until } from '../support/cluster.ts';
import { UNHURRIED } from '../support/spine.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startRealtimeProvider } from '../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../openai/realtime/support/voice-gateway.ts';

test('a client secret opens sessions at every gateway, until its key is deleted at one of them', async () => {
  const provider = await startRealtimeProvider();
  onTestFinished(() => provider.stop());
  const toml = `${UNHURRIED}[billing]\ndrain_ms = 2000\n${voiceBlock(provider.url)}`;
  const cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
  onTestFinished(() => cluster.stop());
  const [one, other] = cluster.gateways;
  const { account, key, hash } = await one!.tenant('page', '10');
  const made = await one!.post(
    '/realtime/client_secrets',
    { session: { model: 'voice', instructions: 'Hi' } },
    { authorization: `Bearer ${key}` },
  );
  const { value } = (await made.json()) as { readonly value: string };
  const url = `${other!.origin.replace('http', 'ws')}/v1/realtime`;
  const open = () =>
    openRealtime(url, value).then(
      (client) => client,
      ({ status }: { readonly status: number }) => status,
    );
  const client = await open();
  if (typeof client === 'number') throw new Error(`refused with ${client}`);
  expect(await client.take('session.created')).toMatchObject({ session: { model: 'voice', instructions: 'Hi' } });

  expect(await one!.app.keys.delete(account, hash)).toBe(true);
  await until(async () => {
    const again = await open();
    if (typeof again === 'number') return again === 401;
    again.socket.close();
    await again.closed;
    return false;
  }, 'the other gateway refuses the secret');
  // The session looks at its key every five seconds.
  expect((await client.closed).code).toBe(1008);
  expect(await other!.faults()).toEqual([]);
});
