/**
 * The reference for the budgets: Fastify with undici.dispatch. Fastify routes, limits and collects the body. The bytes
 * are forwarded without parsing or checks. `--upstream URL`; prints `{"port":n}`.
 */
import fastify from 'fastify';
import { Pool } from 'undici';
import { announce, upstreamArgument } from './announce.ts';
import { forward } from './forward.ts';

const pool = new Pool(upstreamArgument(), { connections: 8192, pipelining: 1 });

const app = fastify({ logger: false, keepAliveTimeout: 60_000 });
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/*', (request, reply) => {
  reply.hijack();
  forward(pool, request.url, request.body as Buffer, reply.raw);
});
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
announce(app.server);
