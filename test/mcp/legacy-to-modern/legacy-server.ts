import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { localhostHostValidation, localhostOriginValidation } from '@modelcontextprotocol/node';
import { onTestFinished } from 'vitest';
import { eventText } from '../../../src/foundation/wire/reply/event-reader.ts';
import { parseMessage, resultText, type RequestMessage } from '../../../src/gateway/json-rpc/message.ts';
import type { LegacySession } from '../../../src/mcp/request/mcp-request.ts';
import type { BridgeWorld, InitializeParams } from './bridge-world.ts';

/** The Streamable HTTP of a legacy server on a real socket, as little of it as clients need, over the bridge. */
export async function startLegacyServer(
  world: BridgeWorld,
): Promise<{ readonly url: string; readonly sessions: ReadonlyMap<string, LegacySession> }> {
  const sessions = new Map<string, LegacySession>();

  async function post(
    session: LegacySession | undefined,
    body: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const message = parseMessage(body);
    if (!message) return void response.writeHead(400).end();
    if (message.kind === 'request' && message.method === 'initialize') {
      const params = message.params as InitializeParams;
      const opened = { ...world.session(params), initialize: message.text };
      sessions.set(opened.id, opened);
      const text = resultText(message.idText, await world.initialize(params.protocolVersion ?? null));
      return void response.writeHead(200, { ...JSON_TYPE, 'mcp-session-id': opened.id }).end(text);
    }
    if (!session) return void response.writeHead(404).end();
    if (message.kind === 'request') return call(session, message, request, response);
    if (message.kind === 'response') world.clientRequests.resolve(session.id, message);
    else if (message.method === 'notifications/cancelled')
      world.bridge.cancel(session.id, message.params?.['requestId'] as string, message.params?.['reason'] as string);
    response.writeHead(202).end();
  }

  async function call(
    session: LegacySession,
    message: RequestMessage,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const begin = () => {
      if (response.headersSent) return;
      response.writeHead(200, EVENTS_TYPE).flushHeaders();
    };
    const answer = await world.ask(session, message.text, {
      events: (request.headers.accept ?? '').includes('text/event-stream'),
      gone: goneSignal(response),
      onEvent(event) {
        begin();
        response.write(eventText(event));
      },
    });
    if (answer.text === null) {
      begin();
      response.end();
    } else if (response.headersSent) response.end(eventText(answer.text));
    else response.writeHead(answer.status, JSON_TYPE).end(answer.text);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const session = sessions.get(String(request.headers['mcp-session-id']));
    if (request.method === 'POST') return post(session, await textOf(request), request, response);
    if (!session) return void response.writeHead(404).end();
    if (request.method === 'GET') {
      response.writeHead(200, EVENTS_TYPE).flushHeaders();
      await world.listen(session, (message) => response.write(eventText(message)), goneSignal(response));
    } else {
      world.clientRequests.end(session.id);
      sessions.delete(session.id);
    }
    response.end();
  }

  const checks = [localhostHostValidation(), localhostOriginValidation()];
  const server = createServer((request, response) => {
    if (checks.some((check) => !check(request, response))) return;
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(502);
      response.end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, sessions };
}

const JSON_TYPE = { 'content-type': 'application/json' } as const;
const EVENTS_TYPE = { 'content-type': 'text/event-stream' } as const;

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  return gone.signal;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
  return text;
}
