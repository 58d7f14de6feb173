import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ScriptedAnswer {
  /** Words of the message. In a stream, each word is a chunk. */
  readonly words: readonly string[];
  /** The `usage` of the reply. undefined: a stream that never ends and has no usage. */
  readonly usage: object | undefined;
  /** Additional members of the message. */
  readonly message?: object;
}

export interface ScriptedUpstream {
  /** Base URL with `/v1`. */
  readonly url: string;
  /** Bodies of the requests, in order of arrival. */
  readonly asked: Record<string, unknown>[];
}

/** A chat service whose answers the test decides. It ends with the test that started it. */
export async function startScriptedUpstream(
  answer: (body: Record<string, unknown>) => ScriptedAnswer,
): Promise<ScriptedUpstream> {
  const asked: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      asked.push(body);
      const { words, usage, message } = answer(body);
      if (body['stream'] !== true) {
        const choice = {
          index: 0,
          message: { role: 'assistant', content: words.join(''), ...message },
          finish_reason: 'stop',
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }),
        );
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      const send = (choices: object[], more: object = {}) =>
        response.write(
          `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`,
        );
      for (const content of words) send([{ index: 0, delta: { content }, finish_reason: null }]);
      if (usage === undefined) return;
      send([{ index: 0, delta: { ...message }, finish_reason: 'stop' }]);
      send([], { usage });
      response.end('data: [DONE]\n\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}
