import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { startGenerator } from '../../bench/generator.ts';
import type { Job, JobResult } from '../../bench/load/job.ts';
import { mcpJobFor } from '../../bench/mcp-targets.ts';
import { announcedPort, startProgram } from '../../bench/program.ts';
import type { Target } from '../../bench/targets.ts';
import { TOOLS } from '../../bench/upstream/mcp-replies.ts';
import { MODELS } from '../../bench/upstream/replies.ts';

const generator = startGenerator();
const servers: Server[] = [];
afterAll(() => {
  generator.stop();
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
});

const post = (body: string) => `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const shape = { kind: 'closed', connections: 4, durationMs: 100 } as const;

/** The first run that is long enough for some calls: on a busy machine none may end in a short one. */
async function runWithCalls(job: Omit<Job, 'shape'>): Promise<JobResult> {
  let result = await generator.run({ ...job, shape });
  for (let durationMs = 400; result.calls < shape.connections && durationMs < 10_000; durationMs *= 2)
    result = await generator.run({ ...job, shape: { ...shape, durationMs } });
  return result;
}

async function against(listener: RequestListener) {
  const server = createServer(
    (request, response) => void request.resume().on('end', () => listener(request, response)),
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return generator.run({ port: (server.address() as AddressInfo).port, request: post('{}'), shape });
}

test.each(Object.values(MODELS).filter((model) => model !== MODELS.open))(
  'the upstream answers %s in full',
  async (model) => {
    const upstream = startProgram([new URL('../../bench/upstream/main.ts', import.meta.url).pathname]);
    try {
      const port = await announcedPort(upstream);
      const result = await runWithCalls({ port, request: post(JSON.stringify({ model })) });
      expect(result).toMatchObject({ errors: 0, firstError: '' });
      expect(result.calls).toBeGreaterThanOrEqual(4);
      expect(result.firstByte.p50).toBeGreaterThan(0);
      expect(result.firstByte.max).toBeLessThanOrEqual(result.latency.max);
    } finally {
      await upstream.stop();
    }
  },
);

test.each(Object.values(TOOLS))('the upstream answers the tool %s in full, and no other', async (tool) => {
  const upstream = startProgram([new URL('../../bench/upstream/main.ts', import.meta.url).pathname]);
  try {
    const port = await announcedPort(upstream);
    const target: Target = { port, pid: null, path: '/mcp', headers: {}, stop: () => Promise.resolve() };
    expect(await generator.run(mcpJobFor(target, tool, shape))).toMatchObject({ errors: 0, firstError: '' });
    const unknown = await generator.run(mcpJobFor(target, 'bench-tool-unknown', shape));
    expect(unknown.calls).toBe(0);
    expect(unknown.firstError).toContain('404');
  } finally {
    await upstream.stop();
  }
});

test('an error status is no call', async () => {
  const result = await against((_request, response) => void response.writeHead(429).end('{"error":"slow down"}'));
  expect(result.calls).toBe(0);
  expect(result.errors).toBeGreaterThan(0);
  expect(result.firstError).toContain('429');
});

test('a stream that breaks off before its end is no call', async () => {
  const result = await against((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"choices":[]}\n\n');
    response.end();
  });
  expect(result).toMatchObject({ calls: 0, firstError: 'a stream without its end' });
});

test('a connection that is cut is no call', async () => {
  const result = await against((request) => request.socket.destroy());
  expect(result.calls).toBe(0);
  expect(result.errors).toBeGreaterThan(0);
});
