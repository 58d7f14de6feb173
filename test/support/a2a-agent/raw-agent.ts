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

interface RawCard {
  readonly name?: string;
  /** Versions of A2A that it speaks. With 0.3 its card has the form of both. */
  readonly versions?: readonly ('1.0' | '0.3')[];
  readonly binding?: 'JSONRPC' | 'HTTP+JSON';
  readonly streaming?: boolean;
}

/** An agent of startRawAgent that has a card: `handler` gets everything else. */
export async function startCardedAgent(
  handler: (exchange: RawExchange) => void | Promise<void>,
  { name = 'Raw', versions = ['1.0'], binding = 'JSONRPC', streaming = false }: RawCard = {},
): Promise<RawAgent> {
  const agent: RawAgent = await startRawAgent((exchange) => {
    const { request, response } = exchange;
    if (!request.path.startsWith('/.well-known/')) return handler(exchange);
    const { url } = agent;
    const card = {
      ...(versions.includes('0.3') ? { protocolVersion: '0.3.0', url, preferredTransport: binding } : {}),
      name,
      description: 'Answers as a test says.',
      version: '1',
      supportedInterfaces: versions.map((protocolVersion) => ({ url, protocolBinding: binding, protocolVersion })),
      capabilities: { streaming },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [],
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card));
  });
  return agent;
}
