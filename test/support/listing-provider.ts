import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider as its API is from outside: it lists models, and answers chat requests with a usage. */
export interface ListingProvider {
  /** Base address with `/v1`. */
  readonly url: string;
  /** Requests in order: method, path, and the headers that may have a key. */
  readonly asked: readonly { readonly what: string; readonly keys: Readonly<Record<string, string>> }[];
  /** Bodies of the chat requests. */
  readonly chats: readonly Readonly<Record<string, unknown>>[];
  /** Its answer to the question for its models, from now on. */
  list(answer: { readonly status?: number; readonly json: unknown }): void;
  /** The usage of its next answers. */
  bill(usage: object): void;
  stop(): Promise<void>;
}

const KEYS = ['authorization', 'x-api-key', 'x-goog-api-key', 'anthropic-version'];
const USAGE = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };

/** `models`: the names in its list. */
export async function startListingProvider(models: readonly string[] = []): Promise<ListingProvider> {
  const asked: { what: string; keys: Record<string, string> }[] = [];
  const chats: Record<string, unknown>[] = [];
  let listed: { readonly status?: number; readonly json: unknown } = { json: { data: models.map((id) => ({ id })) } };
  let usage: object = USAGE;
  const answer = async (request: IncomingMessage): Promise<{ readonly status?: number; readonly json: unknown }> => {
    const keys = KEYS.flatMap((name) =>
      request.headers[name] ? [[name, String(request.headers[name])] as const] : [],
    );
    asked.push({ what: `${request.method} ${request.url}`, keys: Object.fromEntries(keys) });
    const text = (await Array.fromAsync(request as AsyncIterable<Buffer>)).join('');
    if (request.method === 'GET') return listed;
    const body = JSON.parse(text) as Record<string, unknown>;
    chats.push(body);
    const message = { role: 'assistant', content: 'a hundred tokens of text '.repeat(20) };
    return {
      json: {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: body['model'],
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      },
    };
  };
  const server = createServer((request, response) => {
    void answer(request).then(({ status = 200, json }) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    chats,
    list: (next) => void (listed = next),
    bill: (next) => void (usage = next),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
