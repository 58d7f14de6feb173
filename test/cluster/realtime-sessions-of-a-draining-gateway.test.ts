import { expect, inject, onTestFinished, test } from 'vitest';
import { escrowOf } from '#billing';
import { reachable, startCluster } from '../support/cluster.ts';
import { dialIn } from '../support/dial-in.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startRealtimeProvider, usage } from '../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../openai/realtime/support/voice-gateway.ts';

// A gateway stops while sessions of another gateway run through its tunnels, and their provider dials elsewhere.

const portOf = ({ origin }: Spine) => Number(new URL(origin).port);
const FUNDS = 10_000_000n;

/** Two gateways. The proxy of the provider is connected to the first, and dials the other one when that stops. */
async function start(toml: string) {
  const provider = await startRealtimeProvider();
  onTestFinished(() => provider.stop());
  const cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
  onTestFinished(() => cluster.stop());
  const [old, other] = cluster.gateways as [Spine, Spine];
  const target = { port: portOf(old) };
  const balancer = await startFaultProxy(target);
  onTestFinished(() => balancer.stop());
  const proxy = await dialIn({ router: `http://127.0.0.1:${balancer.port}`, services: voiceBlock(provider.url) });
  onTestFinished(() => proxy.kill());
  await reachable([other.origin], 'voice');
  const { key, account } = await other.tenant('far', '10');
  const url = `${other.origin.replace('http', 'ws')}/v1/realtime?model=voice`;
  return {
    other,
    /** Opens a session at the other gateway. */
    async open() {
      const [client, side] = await Promise.all([openRealtime(url, key), provider.session()]);
      await client.take('session.created');
      return { client, side };
    },
    /** The first gateway stops. Resolves when the provider is at the other one. */
    async stop() {
      target.port = portOf(other);
      cluster.forget(old);
      const stopped = old.stop();
      await proxy.logged('ready: calls can come', 2);
      return { stopped };
    },
    balance: async () => (await other.app.ledger.balance(escrowOf(account)))!.available,
  };
}

const delta = (text: string) => ({
  type: 'response.output_text.delta',
  response_id: 'resp_1',
  item_id: 'item_1',
  delta: text,
});

test('sessions end as at a gateway that stops: their response first, then with an error, and then it has stopped', async () => {
  const { other, open, stop, balance } = await start(
    `${UNHURRIED}drain_on_shutdown_ms = 600000\n[billing]\ndrain_ms = 600000\n`,
  );
  const busy = await open();
  const idle = await open();
  busy.client.send({ type: 'response.create' });
  await busy.side.take('response.create');
  busy.side.begin('resp_1');
  await busy.client.take('response.created');
  const { stopped } = await stop();

  const leaving = { error: { message: expect.stringContaining('leaving: open another session') } };
  expect(await idle.client.take('error')).toMatchObject(leaving);
  expect((await idle.client.closed).code).toBe(1011);
  // The response goes on through the gateway that stops.
  expect(await busy.client.take('error')).toMatchObject(leaving);
  busy.side.send(delta('x'.repeat(400)));
  await busy.client.take('response.output_text.delta');
  busy.side.done('resp_1', usage(8, 100));
  expect((await busy.client.done()).usage.output_tokens).toBe(100);
  expect((await busy.client.closed).code).toBe(1011);
  await stopped;
  // The next session goes where the provider is now.
  const next = await open();
  next.client.socket.close();
  await next.client.closed;
  await other.quiet();
  // 8 × 4 + 100 × 16
  expect(await balance()).toBe(FUNDS - 1_632n);
  expect(await other.faults()).toEqual([]);
});

test('a response that does not end in time is cut with the tunnel, and what came of it is paid', async () => {
  const { other, open, stop, balance } = await start(`${UNHURRIED}drain_on_shutdown_ms = 3000\n`);
  const { client, side } = await open();
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.begin('resp_1');
  side.send(delta('x'.repeat(400)));
  await client.take('response.output_text.delta');
  const { stopped } = await stop();
  await stopped;
  await Promise.all([client.closed, side.closed]);
  await other.quiet();
  // 400 bytes of text are 100 tokens.
  expect(await balance()).toBe(FUNDS - 1_600n);
  expect(await other.faults()).toEqual([]);
});
