import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseMessage } from '../../src/gateway/json-rpc/message.ts';

/** A request to a raw MCP server. */
export interface Asked {
  readonly text: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly idText: string;
  readonly headers: IncomingHttpHeaders;
  /** Aborts if the client leaves before the answer is complete. */
  readonly left: AbortSignal;
}

/** The result as JSON text, or a function that writes the whole HTTP answer. */
export type RawAnswer = string | ((response: ServerResponse, asked: Asked) => void | Promise<void>);

export interface RawMcp {
  readonly url: string;
  /** The requests of clients. */
  readonly asked: Asked[];
  close(): Promise<void>;
}

const DISCOVERED = JSON.stringify({
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
  resultType: 'complete',
  ttlMs: 0,
  cacheScope: 'private',
});

/**
 * A modern MCP server whose results are texts, so that a test controls each byte. `tools` are JSON texts of the tools
 * that it lists to the gateway itself.
 */
export async function startRawMcp(
  answer: (asked: Asked) => RawAnswer | Promise<RawAnswer>,
  tools: readonly string[] = [],
): Promise<RawMcp> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void readText(request).then(async (text) => {
      const message = parseMessage(text);
      if (message?.kind !== 'request') return response.writeHead(400).end();
      const { idText } = message;
      const result = (given: string) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${idText},"result":${given}}`);
      if (message.method === 'server/discover') return result(DISCOVERED);
      // The gateway's own request for the list.
      if (idText.startsWith('"tollgate:'))
        return result(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[${tools.join(',')}]}`);
      const left = new AbortController();
      response.on('close', () => {
        if (!response.writableEnded) left.abort();
      });
      const one: Asked = {
        text,
        method: message.method,
        params: message.params ?? {},
        idText,
        headers: request.headers,
        left: left.signal,
      };
      asked.push(one);
      const given = await answer(one);
      return typeof given === 'function' ? given(response, one) : result(given);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
