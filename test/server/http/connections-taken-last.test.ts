import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import fastify from 'fastify';
import { expect, test } from 'vitest';
import { createConnectionRelease } from '#http';

// A proxy sends a request on a connection that the system has taken for a gateway. The gateway stops before it has
// looked at the connection: it answers.

const REQUESTS = 8;
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads');
const http = require('node:http');
const go = new Int32Array(workerData.shared);
Atomics.wait(go, 0, 0);
const one = () => new Promise((resolve) =>
  http.get({ port: workerData.port, agent: false }, (answer) => { answer.resume(); resolve(answer.statusCode); })
    .on('error', (error) => resolve(error.code)));
Promise.all(Array.from({ length: ${REQUESTS} }, one)).then((all) => parentPort.postMessage(all));
`;
const BUSY_MS = 400;

test('requests on connections that the system took before the end are answered', async () => {
  const server = fastify();
  server.get('/', () => 'served');
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const shared = new SharedArrayBuffer(4);
  const worker = new Worker(PROGRAM, { eval: true, workerData: { port, shared } });
  const answers = new Promise((resolve) => worker.once('message', resolve));
  await new Promise((resolve) => worker.once('online', resolve));
  const release = createConnectionRelease(server);
  setTimeout(() => {
    const go = new Int32Array(shared);
    Atomics.store(go, 0, 1);
    Atomics.notify(go, 0);
    // As a gateway under load.
    for (const end = performance.now() + BUSY_MS; performance.now() < end;);
  });
  // Due in the same turn of the event loop.
  const stopped = new Promise((resolve) => setTimeout(() => resolve(release.stopAccepting())));
  expect(await answers).toEqual(Array.from({ length: REQUESTS }, () => 200));
  await stopped;
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed');
  await worker.terminate();
  await server.close();
});
