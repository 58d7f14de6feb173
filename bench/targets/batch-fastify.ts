/**
 * The reference for JSON-RPC batches: Fastify with undici. It parses the batch and posts the parameters of all entries
 * at once to the upstream's chat endpoint. It answers with an array of the unchanged replies. It checks and bills
 * nothing. `--upstream URL`; prints `{"port":n}`.
 */
import fastify from 'fastify';
import { Pool } from 'undici';
import { announce, upstreamArgument } from './announce.ts';

interface Entry {
  readonly id: unknown;
  readonly params: unknown;
}

const pool = new Pool(upstreamArgument(), { connections: 8192, pipelining: 1 });
const headers = { 'content-type': 'application/json' };

async function answer({ id, params }: Entry): Promise<string> {
  const path = '/v1/chat/completions';
  const { body } = await pool.request({ path, method: 'POST', headers, body: JSON.stringify(params) });
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${await body.text()}}`;
}

const app = fastify({ logger: false, keepAliveTimeout: 60_000 });
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/*', async (request, reply) => {
  const entries = JSON.parse((request.body as Buffer).toString()) as readonly Entry[];
  const replies = await Promise.all(entries.map(answer));
  return reply.type('application/json').send(`[${replies.join(',')}]`);
});
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
announce(app.server);
// A normal exit, so that a profiler can write its file.
process.on('SIGTERM', () => process.exit(0));
