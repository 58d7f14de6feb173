/**
 * The minimum of a gateway in Node: node:http and undici.dispatch. It forwards bytes and looks at nothing. `--upstream
 * URL`; prints `{"port":n}`.
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { announce, upstreamArgument } from './announce.ts';
import { forward } from './forward.ts';

const pool = new Pool(upstreamArgument(), { connections: 8192, pipelining: 1 });

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () =>
    forward(pool, request.url ?? '/', parts.length === 1 ? parts[0]! : Buffer.concat(parts), response),
  );
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => announce(server));
