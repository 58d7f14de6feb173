import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { eventText } from '../../../src/foundation/wire/reply/event-reader.ts';

/** A request as a modern server got it. */
export interface Got {
  readonly headers: IncomingHttpHeaders;
  /** The body. */
  readonly text: string;
  readonly id: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Resolves when the gateway closed the exchange before its end. */
  readonly closed: Promise<unknown>;
}

export interface Reply {
  /** Ends with one JSON message. */
  json(text: string, status?: number): void;
  /** Ends with a JSON result. */
  result(text: string): void;
  /** Writes one event. */
  event(text: string): void;
  end(): void;
  readonly raw: ServerResponse;
}

export interface RawServer {
  readonly url: string;
  /** All but those for `server/discover`. */
  readonly got: readonly Got[];
  /** Refuses connections from now on. */
  stop(): Promise<void>;
}

const DISCOVER =
  '{"resultType":"complete","ttlMs":0,"cacheScope":"public","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}';

/** A server that answers every request but `server/discover` as the test says. */
export async function startRawServer(
  answer: (got: Got, reply: Reply) => void | Promise<void>,
  discover = DISCOVER,
): Promise<RawServer> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text) as Got;
      const reply: Reply = {
        raw: response,
        json: (body, status = 200) => void response.writeHead(status, { 'content-type': 'application/json' }).end(body),
        result: (result) => reply.json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`),
        event(message) {
          if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write(eventText(message));
        },
        end: () => void response.end(),
      };
      if (method === 'server/discover') return reply.result(discover);
      const closed = once(response, 'close');
      const one: Got = { headers: request.headers, text, id, method, params, closed };
      got.push(one);
      void answer(one, reply);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  onTestFinished(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got, stop };
}

/** A tool call as text, with these members behind `name`. */
export const toolCall = (id: string, name = 'tool', more = '') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}"${more}}}`;
