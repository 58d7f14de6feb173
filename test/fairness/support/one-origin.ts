import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Gateway } from '../../support/gateway.ts';

/** A model and an agent of one provider, both at one address. */
export interface OneOrigin {
  readonly url: string;
  /** TOML of both: the model `shared/model` (free) and the agent `shared/agent` (0.001 USD a message). */
  readonly toml: string;
  /** Streams of tasks that are open. */
  readonly subscriptions: number;
  /** Chat requests that wait. */
  readonly held: number;
  /** Resolves when `is` holds. */
  until(is: () => boolean): Promise<void>;
  /** Answers all chat requests that wait. */
  release(): void;
  close(): Promise<void>;
}

/** A chat request whose text is this is answered with `release`, any other at once. */
export const HOLD = 'hold';

/** The size of the answer to a chat request is its text, where that is a number. */
const sizeOf = (text: string): number => (/^\d+$/.test(text) ? Number(text) : 2);

export async function startOneOrigin(): Promise<OneOrigin> {
  const held = new Set<ServerResponse>();
  const open = new Set<ServerResponse>();
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const keep = (all: Set<ServerResponse>, response: ServerResponse) => {
    all.add(response);
    response.once('close', () => {
      all.delete(response);
      change();
    });
    change();
  };
  let tasks = 0;

  const chat = (body: { readonly messages: readonly [{ readonly content: string }] }, response: ServerResponse) => {
    const { content } = body.messages[0];
    if (content === HOLD) return keep(held, response);
    reply(response, 'a'.repeat(sizeOf(content)));
  };
  const agent = (
    body: { readonly id: unknown; readonly method: string; readonly params: { readonly id?: string } },
    response: ServerResponse,
  ) => {
    const result = (value: object) => JSON.stringify({ jsonrpc: '2.0', id: body.id, result: value });
    const shown = (id: string) => ({ id, contextId: `context-of-${id}`, status: { state: 'TASK_STATE_WORKING' } });
    if (body.method === 'SubscribeToTask') {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`data: ${result({ task: shown(body.params.id!) })}\n\n`);
      return keep(open, response);
    }
    json(response, result(body.params.id === undefined ? { task: shown(`task-${++tasks}`) } : shown(body.params.id)));
  };
  const server = createServer((request, response) => {
    if (request.method === 'GET') return json(response, JSON.stringify(cardOf(url)));
    void read(request).then((text) => {
      if (request.url!.startsWith('/v1/')) chat(JSON.parse(text) as never, response);
      else agent(JSON.parse(text) as never, response);
    });
  });
  // A thousand connect at once, to a process that has other things to do; and none is closed under a request that
  // is on its way.
  server.keepAliveTimeout = 60_000;
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    toml: `
[[models]]
name = "shared/model"
display_name = "Shared: Model"
provider_name = "Shared"
context_length = 100000000
max_output_tokens = 10000000
pricing = { prompt = 0, completion = 0 }
params = { model = "m", api_base = "${url}/v1" }

[[agents]]
name = "shared/agent"
provider_name = "Shared"
endpoint = "${url}"
pricing = { per_call = 0.001 }
`,
    get subscriptions() {
      return open.size;
    },
    get held() {
      return held.size;
    },
    async until(is) {
      while (!is()) await changed.promise;
    },
    release() {
      for (const response of held) if (!response.headersSent) reply(response, 'ok');
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const json = (response: ServerResponse, text: string) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(text);

function reply(response: ServerResponse, content: string): void {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  json(response, JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }));
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

const cardOf = (url: string) => ({
  name: 'Shared',
  description: 'Shares its address with a model.',
  version: '1',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
});

/** A chat request for the shared model. */
export function chat(
  gateway: Pick<Gateway, 'baseUrl'>,
  key: string,
  content: string,
  more: { readonly signal?: AbortSignal; readonly idempotencyKey?: string } = {},
) {
  return fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(more.idempotencyKey === undefined ? {} : { 'idempotency-key': more.idempotencyKey }),
    },
    body: JSON.stringify({ model: 'shared/model', messages: [{ role: 'user', content }] }),
    ...(more.signal ? { signal: more.signal } : {}),
  });
}

/** One call of somebody who does nothing wrong. Waits so long for it and no longer. */
export const honest = (gateway: Pick<Gateway, 'baseUrl'>, key: string) => async (): Promise<boolean> => {
  const response = await chat(gateway, key, 'hello', { signal: AbortSignal.timeout(10_000) });
  await response.text();
  return response.ok;
};

/** One request of A2A 1.0 to the shared agent. */
export function askAgent(
  gateway: Pick<Gateway, 'baseUrl'>,
  key: string,
  method: string,
  params: object,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${gateway.baseUrl}/a2a/shared/agent`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    ...(signal ? { signal } : {}),
  });
}

/** Begins a task that goes on. Gives its id. */
export async function beginTask(gateway: Pick<Gateway, 'baseUrl'>, key: string): Promise<string> {
  const response = await askAgent(gateway, key, 'SendMessage', {
    message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'work' }] },
  });
  const { result } = (await response.json()) as { result: { task: { id: string } } };
  return result.task.id;
}

/** What one account with many keys may ask for: it may have a thousand of them, each with a rate of its own. */
export const MANY_KEYS = '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n';
