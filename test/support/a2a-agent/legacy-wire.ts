import type { ServerResponse } from 'node:http';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server';

/**
 * Answers a JSON-RPC request like an agent that is older than 1.0: it ignores `A2A-Version` and doesn't know the
 * methods of 1.0.
 */
export function createLegacyWire(
  handler: A2ARequestHandler,
): (body: string, response: ServerResponse) => Promise<void> {
  const rpc = new LegacyJsonRpcTransportHandler(handler);
  return async (body, response) => {
    const request = parseObject(body);
    if (!request) return sendJson(response, failure(null, -32700, 'Invalid JSON payload'));
    const reply = await rpc.handle(request, new ServerCallContext({ requestedVersion: '0.3' }));
    if (!(Symbol.asyncIterator in reply)) return sendJson(response, reply);
    const events = reply[Symbol.asyncIterator]();
    let next: Awaited<ReturnType<typeof events.next>>;
    try {
      next = await events.next();
    } catch (error) {
      const { code, message } = LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error);
      return sendJson(response, failure(request['id'] ?? null, code, message));
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    while (!next.done) {
      response.write(`data: ${JSON.stringify(next.value)}\n\n`);
      next = await events.next();
    }
    response.end();
  };
}

const failure = (id: unknown, code: number, message: string) => ({ jsonrpc: '2.0', id, error: { code, message } });

const sendJson = (response: ServerResponse, body: object) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

function parseObject(body: string): Record<string, unknown> | null {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    return null;
  }
}
