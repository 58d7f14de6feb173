import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FailingRequest {
  readonly path: string;
  readonly body: Record<string, unknown>;
  /** How many requests this behaviour has had, with this one. */
  readonly nth: number;
}

/** Answers a request in a way that has a name. */
export type Behaviour = (response: ServerResponse, request: FailingRequest) => unknown;

export interface FailingUpstream<N extends string> {
  /** Base URL of a provider that behaves so. */
  urlOf(name: N): string;
  /** The requests that a behaviour has had since the last `clear`. */
  seen(name: N): readonly FailingRequest[];
  clear(): void;
  stop(): void;
}

/** A provider of models for each behaviour: the first part of a path names it. */
export async function startFailingUpstream<N extends string>(
  behaviours: Readonly<Record<N, Behaviour>>,
): Promise<FailingUpstream<N>> {
  const log: { name: string; request: FailingRequest }[] = [];
  const seen = (name: string) => log.filter((one) => one.name === name).map(({ request }) => request);
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const [, name = '', ...rest] = request.url!.split('/');
      const body = JSON.parse(Buffer.concat(parts).toString() || '{}') as Record<string, unknown>;
      const seenRequest = { path: `/${rest.join('/')}`, body, nth: seen(name).length + 1 };
      log.push({ name, request: seenRequest });
      behaviours[name as N](response, seenRequest);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    urlOf: (name) => `${origin}/${name}/v1`,
    seen,
    clear: () => void (log.length = 0),
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };

/** The events of a chat stream: the chunk of the role, one for each text, and the end with usage. */
export const chatEvents = {
  role: chunk({ role: 'assistant', content: '' }),
  text: (content: string) => chunk({ content }),
  error: (error: object) => `data: ${JSON.stringify({ error })}\n\n`,
  end: `${chunk({}, 'stop')}data: ${JSON.stringify({ id: 'x', choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`,
};

export const beginStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

export const failWith =
  (status: number, error: object, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }));

/** A whole answer, streamed if a stream was asked for. */
export const answerChat =
  (...texts: string[]): Behaviour =>
  (response, { body }) => {
    if (body['stream'] === true)
      return beginStream(response).end(chatEvents.role + texts.map(chatEvents.text).join('') + chatEvents.end);
    const message = { role: 'assistant', content: texts.join('') };
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(
      JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'stop' }], usage: USAGE }),
    );
  };
