import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGenerator, type Generator } from '../../bench/generator.ts';

const STALL_MS = 400;
let server: Server;
let generator: Generator;
let stallAt = 0;
let answered = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      // The whole server stands still once, as a garbage collection would have it.
      if (++answered === stallAt) for (const end = performance.now() + STALL_MS; performance.now() < end;);
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  generator = startGenerator();
});
afterAll(() => {
  generator.stop();
  server.closeAllConnections();
  server.close();
});

const run = (durationMs: number) => {
  const { port } = server.address() as AddressInfo;
  return generator.run({
    port,
    request: 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}',
    shape: { kind: 'open', perSecond: 200, durationMs },
  });
};

test('a request that was due while the target stood still carries its wait, whether or not it could be sent', async () => {
  stallAt = 40;
  const result = await run(1000);
  expect(result.errors).toBe(0);
  expect(result.calls).toBe(200);
  // 80 of the 200 requests fell due during the stall and waited for what was left of it, 200 ms on average.
  expect(result.latency.max).toBeGreaterThan(STALL_MS * 0.9);
  expect(result.latency.p90).toBeGreaterThan(STALL_MS * 0.3);
  expect(result.elapsedMs).toBeGreaterThan(990);
});
