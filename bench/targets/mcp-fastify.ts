/**
 * The reference for MCP: Fastify with undici.dispatch. It forwards the JSON-RPC body unchanged, with the headers that a
 * server of the modern revision needs. It checks and bills nothing. With `--parse` the body is parsed once, but not
 * used. `--upstream URL`; prints `{"port":n}`.
 */
import type { IncomingHttpHeaders } from 'node:http';
import fastify from 'fastify';
import { Pool } from 'undici';
import { announce, upstreamArgument } from './announce.ts';
import { forward } from './forward.ts';

const pool = new Pool(upstreamArgument(), { connections: 8192, pipelining: 1 });
const parses = process.argv.includes('--parse');
const NEEDED = ['accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

function needed(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = { 'content-type': 'application/json' };
  for (const name of NEEDED) if (typeof headers[name] === 'string') passed[name] = headers[name];
  return passed;
}

const app = fastify({ logger: false, keepAliveTimeout: 60_000 });
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/*', (request, reply) => {
  const body = request.body as Buffer;
  if (parses && (JSON.parse(body.toString()) as { jsonrpc?: unknown }).jsonrpc !== '2.0')
    throw new Error('no JSON-RPC');
  reply.hijack();
  forward(pool, request.url, body, reply.raw, needed(request.headers));
});
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
announce(app.server);
// A normal exit, so that a profiler can write its file.
process.on('SIGTERM', () => process.exit(0));
