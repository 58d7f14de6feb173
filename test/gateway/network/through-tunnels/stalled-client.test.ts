import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { startFirehose } from '../../../support/firehose.ts';
import { postLazily } from '../../../support/lazy-reader.ts';
import { bytesInKernel } from '../../../support/process-figures.ts';
import { askTunnel, startTunnelSpine, until } from '../../../support/tunnel-spine.ts';

const STALL_MS = 500;
const DRAIN_BYTES = 1_000_000;
/** More than the sockets between hold, even on loopback. */
const REPLY_BYTES = 32 * 1024 * 1024;
const TOKENS = REPLY_BYTES / 8;

const service = (url: string) => `
[[models]]
name = "tunnel/model"
display_name = "Long"
provider_name = "Firehose"
context_length = 100000000
max_output_tokens = ${TOKENS}
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "upstream-model"
api_base = "${url}"
`;

test('a client that stops reading a reply from a tunnel is cut off, pays for what was made, and its provider is let go', async () => {
  const firehose = await startFirehose({ events: REPLY_BYTES / 16_384, eventBytes: 16_384 });
  onTestFinished(() => firehose.stop());
  const world = await startTunnelSpine(`client_stall_ms = ${STALL_MS}\n[billing]\ndrain_bytes = ${DRAIN_BYTES}`, {
    credit: '1000',
  });
  const { spine } = world;
  const proxy = await world.dialIn({ services: service(firehose.url) });
  const client = await postLazily(spine.origin, spine.key, askTunnel('hello', { stream: true, max_tokens: TOKENS }));
  const head = once(client.socket, 'data');
  const cut = once(client.socket, 'close');
  const asked = performance.now();
  await until(() => firehose.sent.left === 1);
  expect(performance.now() - asked).toBeGreaterThanOrEqual(STALL_MS);
  await spine.quiet();
  const withClient = bytesInKernel(client.socket.localPort!);

  client.socket.resume();
  const id = /x-generation-id: (\S+)/.exec(String((await head)[0]))![1]!;
  await cut;
  const generation = await spine.generation(id);
  expect(generation).toMatchObject({ state: 'settled', estimated: true, cancelled: true, provider: proxy.id });
  // A token for each 4 bytes, at 2 micro-USD: of what reached the client's side, and of what was read on until the
  // bound. Of what reached the client's side, about 1 % is framing and no text.
  expect(generation.cost_micro_usdc).toBeGreaterThan(((0.98 * withClient + DRAIN_BYTES / 2) / 4) * 2);
  expect(generation.cost_micro_usdc).toBeLessThan((firehose.sent.bytes / 4) * 2);
  expect((await world.endpoints())![0]).toMatchObject({ health: 'untried', flags: {} });
});
