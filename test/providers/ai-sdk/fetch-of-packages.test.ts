import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { createFetch } from '../../../src/providers/ai-sdk/worker/outgoing-fetch.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

test('a request of a package ends when it is given up, however long its reply lasts', async () => {
  const server = createServer();
  const begun = Promise.withResolvers<ServerHttp2Stream>();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200 });
    stream.write('a piece');
    begun.resolve(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const left = new AbortController();
  const { body } = await createFetch(session)('http://vendor.test/', { signal: left.signal });
  const reader = body!.getReader();
  await reader.read();
  const stream = await begun.promise;
  const closed = once(stream, 'close');
  // What nothing holds is collected, as it is in a process under load.
  for (let turn = 0; turn < 5; turn++) {
    gc();
    await new Promise(setImmediate);
  }
  const given = reader.read();
  left.abort();
  await Promise.all([closed, expect(given).rejects.toThrow()]);
});
