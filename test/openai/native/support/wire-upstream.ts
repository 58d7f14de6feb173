import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as it reached the provider. */
export interface Reached {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Record<string, unknown>;
  /** Resolves when its connection is closed before the answer has ended. */
  readonly left: Promise<void>;
}

export interface WireAnswer {
  readonly status?: number;
  /** Default: events where the request asks for a stream, else JSON. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: string;
  /** More of it, once it is known: the text before it goes out by itself. */
  readonly rest?: Promise<string>;
  /** The connection breaks after the text. */
  readonly breaks?: boolean;
}

export interface WireUpstream {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly reached: Reached[];
  /** Answers every request from now on. */
  answer: (request: Reached) => WireAnswer;
  /** Refuses every connection from now on. Answers that are under way end. */
  refuse(): void;
  /** Takes connections again, at the same address. */
  accept(): void;
  stop(): Promise<void>;
}

/** A provider of any wire that says word for word what a test tells it to. */
export async function startWireUpstream(): Promise<WireUpstream> {
  const reached: Reached[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      const left = new Promise<void>((resolve) =>
        response.once('close', () => {
          if (!response.writableFinished) resolve();
        }),
      );
      const one = { path: request.url!, headers: request.headers, text, body, left };
      reached.push(one);
      const { status = 200, type, headers, text: said, rest, breaks = false } = upstream.answer(one);
      const usual = body['stream'] === true && status === 200 ? 'text/event-stream' : 'application/json';
      if (!server.listening) response.setHeader('connection', 'close');
      response.writeHead(status, { 'content-type': type ?? usual, ...headers });
      const end = (last: string) => {
        if (breaks) response.write(last, () => response.destroy());
        else response.end(last);
      };
      if (rest === undefined) return end(said);
      response.write(said);
      void rest.then(end);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstream: WireUpstream = {
    url: `http://127.0.0.1:${port}/v1`,
    reached,
    answer: () => {
      throw new Error('no answer was given');
    },
    refuse() {
      server.close();
    },
    accept() {
      server.listen(port, '127.0.0.1');
    },
    async stop() {
      const closed = server.listening ? once(server, 'close') : undefined;
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return upstream;
}

export const event = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
