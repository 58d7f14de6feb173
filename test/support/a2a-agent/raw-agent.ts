import type { RawAgent, RawExchange } from './agent.ts';
import { listen } from './listening.ts';
import { createReceived, receive } from './received.ts';

/**
 * Starts an agent that is only an HTTP server. `handler` writes each answer. If it throws, the connection is closed.
 */
export async function startRawAgent(
  handler: (exchange: RawExchange) => void | Promise<void>,
  port = 0,
): Promise<RawAgent> {
  const received = createReceived();
  const server = await listen((incoming, response) => {
    const run = async () => {
      const request = await receive(incoming);
      received.add(request);
      const id = request.method === null ? null : (JSON.parse(request.body) as { id?: unknown }).id;
      const json = (body: object) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
      await handler({
        request,
        id,
        response,
        result: (result) => json({ result }),
        error: (code, message) => json({ error: { code, message } }),
        events(results) {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (const result of results) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
          response.end();
        },
      });
    };
    run().catch(() => response.destroy());
  }, port);
  return {
    url: server.url,
    received: received.requests,
    get asked() {
      return received.asked;
    },
    receives: (fits) => received.first(fits),
    close: () => server.close(),
  };
}
