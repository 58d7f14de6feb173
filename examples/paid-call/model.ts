/**
 * A model behind an OpenAI-compatible API, as a provider may have one: it speaks in words, and reports what it used.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const WORDS = 'A tollgate asks for its due before it lets you pass and this one gives back what you did not use'.split(
  ' ',
);

async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { stream = false } = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') as { stream?: boolean };
  const head = { id: 'chatcmpl-demo', created: Math.floor(Date.now() / 1000), model: 'oracle' };
  const usage = { prompt_tokens: 12, completion_tokens: WORDS.length, total_tokens: 12 + WORDS.length };
  if (!stream) {
    const message = { role: 'assistant', content: `${WORDS.join(' ')}.` };
    const body = { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const say = (choice: object, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }], ...more })}\n\n`,
    );
  for (const [index, word] of WORDS.entries()) {
    say({
      delta: { ...(index === 0 ? { role: 'assistant' } : {}), content: index === 0 ? word : ` ${word}` },
      finish_reason: null,
    });
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  say({ delta: { content: '.' }, finish_reason: 'stop' }, { usage });
  response.end('data: [DONE]\n\n');
}

export async function startModel(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => void reply(request, response).catch(() => response.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
