import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** One request as it came. */
export interface Asked {
  readonly http: 'POST' | 'GET' | 'DELETE';
  readonly headers: IncomingMessage['headers'];
  /** Empty where there was none. */
  readonly text: string;
  /** The parsed body; an empty object where there was none. */
  readonly message: {
    readonly id?: string | number;
    readonly method?: string;
    readonly params?: Readonly<Record<string, unknown>>;
  };
  readonly session: string | undefined;
}

export interface ScriptedServer {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Sessions that are open. */
  readonly open: Set<string>;
  /** DELETE is heard and not answered. */
  silent: boolean;
}

export interface Script {
  /** The result of `initialize`, as text. */
  readonly initializeResult?: string | (() => string);
  /** Answers what is no handshake. What it does not answer gets 202. */
  readonly answer?: (asked: Asked, response: ServerResponse) => unknown;
  /** Ids of sessions, in turn; default `upstream-1`, `upstream-2`, … null: none. */
  readonly sessionId?: ((n: number) => string) | null;
  /** What an unknown session is answered with; default 404. */
  readonly unknownSession?: (response: ServerResponse) => void;
}

const INITIALIZE_RESULT = JSON.stringify({
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true }, logging: {} },
  serverInfo: { name: 'scripted', version: '1' },
});

/**
 * A legacy MCP server of node:http alone: its handshake is done, the rest is the test's. It knows no `server/discover`.
 */
export async function startScripted({
  initializeResult = INITIALIZE_RESULT,
  answer,
  sessionId = (n) => `upstream-${n}`,
  unknownSession,
}: Script = {}): Promise<ScriptedServer> {
  const asked: Asked[] = [];
  const open = new Set<string>();
  let made = 0;
  const scripted = { url: '', asked, open, silent: false };
  const server = createServer((request, response) => {
    void (async () => {
      const text = await readText(request);
      const session = request.headers['mcp-session-id'] as string | undefined;
      const one: Asked = {
        http: request.method as Asked['http'],
        headers: request.headers,
        text,
        message: parsed(text),
        session,
      };
      asked.push(one);
      const { id, method } = one.message;
      if (method === 'server/discover')
        return json(response, { jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } }, 400);
      if (method === 'initialize') {
        if (sessionId !== null) {
          const own = sessionId(++made);
          open.add(own);
          response.setHeader('mcp-session-id', own);
        }
        response.setHeader('content-type', 'application/json');
        return response.end(
          `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${typeof initializeResult === 'string' ? initializeResult : initializeResult()}}`,
        );
      }
      if (session !== undefined && !open.has(session)) {
        if (unknownSession) return unknownSession(response);
        return json(
          response,
          { jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'Session not found' } },
          404,
        );
      }
      if (one.http === 'DELETE' && session !== undefined) {
        if (scripted.silent) return undefined;
        open.delete(session);
        return response.writeHead(200).end();
      }
      await answer?.(one, response);
      if (!response.headersSent) response.writeHead(one.http === 'GET' ? 405 : 202).end();
      return undefined;
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  scripted.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return scripted;
}

export function json(response: ServerResponse, message: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof message === 'string' ? message : JSON.stringify(message));
}

/** Begins a stream of events. */
export function events(response: ServerResponse, ...first: string[]): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const text of first) response.write(text);
  return response;
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function parsed(text: string): Asked['message'] {
  return text === '' ? {} : (JSON.parse(text) as Asked['message']);
}
