/**
 * The reference for counting tokens: a bare Fastify route. It parses the body and divides the length of its text by
 * four. It has no key, no rate limit and no schema. Prints `{"port":n}`.
 */
import fastify from 'fastify';
import { announce } from './announce.ts';

interface Counted {
  readonly messages: readonly { readonly content: string }[];
}

const app = fastify({ logger: false, keepAliveTimeout: 60_000 });
app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/*', (request, reply) => {
  const { messages } = JSON.parse((request.body as Buffer).toString()) as Counted;
  const bytes = messages.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  return reply.send({ input_tokens: Math.ceil(bytes / 4) });
});
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
announce(app.server);
