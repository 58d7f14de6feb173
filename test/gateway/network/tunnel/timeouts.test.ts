import { expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { unlessStalled } from '../../../support/unless-stalled.ts';
import { restOf, startWorld } from './tunnel-world.ts';

test('a reply whose head does not come in time', async () => {
  const world = await startWorld({ upstream: { headTimeoutMs: 80 } });
  const reset = Promise.withResolvers<void>();
  const peer = await world.peer({ serve: (stream) => stream.once('close', reset.resolve) });
  const head = world.send(peer.welcome.provider).head;
  await expect(head).rejects.toThrow(UpstreamFailure);
  await expect(head).rejects.toMatchObject({ message: 'the provider did not answer in time', retryable: true });
  await reset.promise;
});

test('a reply that falls silent, however long it took before', async () => {
  const [idle, pause, ticks] = [400, 40, 15];
  const world = await startWorld({ upstream: { idleTimeoutMs: idle } });
  const peer = await world.peer({
    async serve(stream) {
      stream.respond({ ':status': 200 });
      for (let tick = 0; tick < ticks; tick++) {
        stream.write('tick');
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    },
  });
  // Two ticks that a stall parts are a silence.
  await unlessStalled(idle / 4, async () => {
    const begun = performance.now();
    const reply = await world.send(peer.welcome.provider).head;
    await expect(restOf(reply)).rejects.toThrow('the provider fell silent in the middle of its answer');
    expect(performance.now() - begun).toBeGreaterThan(idle + 0.8 * ticks * pause);
  });
});

test('a reader that takes its time is no silence of the provider', async () => {
  const world = await startWorld({ upstream: { idleTimeoutMs: 200 } });
  const peer = await world.peer({
    serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('x'.repeat(400_000))),
  });
  const reply = await world.send(peer.welcome.provider).head;
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect((await restOf(reply)).byteLength).toBe(400_000);
});

test('what goes on after a reply was complete is reset soon', async () => {
  const world = await startWorld();
  const reset = Promise.withResolvers<number | undefined>();
  let said = 0;
  const peer = await world.peer({
    serve(stream) {
      stream.once('close', () => reset.resolve(stream.rstCode));
      stream.respond({ ':status': 200 });
      stream.write('data: [DONE]\n\n');
      const babble = setInterval(() => stream.write('x'.repeat(10_000), () => said++), 5);
      stream.once('close', () => clearInterval(babble));
    },
  });
  const reply = await world.send(peer.welcome.provider).head;
  await reply.read();
  reply.discard();
  expect(await reset.promise).toBe(8);
  // By what came, long before the time that a silent one has.
  expect(said).toBeLessThan(50);
});
