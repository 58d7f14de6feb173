import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One turn of the model. */
export interface Turn {
  readonly text?: string;
  /** Says its text as a list of parts, in a reply in one piece. */
  readonly inParts?: boolean;
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly args?: unknown }[];
  readonly finish?: string;
  readonly prompt?: number;
  readonly completion?: number;
  /** Refuses with this status. */
  readonly status?: number;
  /** Sent as it is, in the place of a stream. */
  readonly raw?: { readonly type: string; readonly text: string };
  /** Held back until this resolves; a stream has said its text before. */
  readonly until?: Promise<unknown>;
}

export interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly [field: string]: unknown }[];
  readonly tools?: readonly {
    readonly function: { readonly name: string; readonly parameters: unknown; readonly description: string };
  }[];
  readonly [field: string]: unknown;
}

/**
 * A chat model on a real socket that says what the test tells it to, turn by turn. After the last one it goes on
 * with that.
 */
export interface ScriptedModel {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly asked: Asked[];
  says(...turns: readonly (Turn | ((asked: Asked) => Turn))[]): void;
  stop(): Promise<void>;
}

export async function startScriptedModel(): Promise<ScriptedModel> {
  const asked: Asked[] = [];
  let script: readonly (Turn | ((asked: Asked) => Turn))[] = [{ text: 'hello' }];
  let place = 0;
  const server = createServer((request, response) => {
    response.on('error', () => {});
    void (async () => {
      const body = JSON.parse(await read(request)) as Asked;
      asked.push(body);
      const next = script[Math.min(place++, script.length - 1)]!;
      await answer(body, typeof next === 'function' ? next(body) : next, response);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    says(...turns) {
      script = turns;
      place = 0;
      asked.length = 0;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function answer(body: Asked, turn: Turn, response: ServerResponse): Promise<void> {
  if (turn.status !== undefined) return void response.writeHead(turn.status).end('{"error":{"message":"no"}}');
  if (turn.raw !== undefined) return void response.writeHead(200, { 'content-type': turn.raw.type }).end(turn.raw.text);
  const calls = (turn.calls ?? []).map(({ id, name, args }, index) => ({
    index,
    id: id ?? `call_${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) },
  }));
  const finish_reason = turn.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop');
  const [prompt, completion] = [turn.prompt ?? 10, turn.completion ?? 5];
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  const content = turn.text ?? null;
  if (body.stream !== true) {
    await turn.until;
    const message = {
      role: 'assistant',
      content: turn.inParts ? [{ type: 'text', text: content }] : content,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(
      JSON.stringify({
        id: 'theirs',
        object: 'chat.completion',
        created: 1,
        choices: [{ index: 0, message, finish_reason }],
        usage,
      }),
    );
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (choices: unknown, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ id: 'theirs', object: 'chat.completion.chunk', created: 1, choices, ...more })}\n\n`,
    );
  chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
  for (const word of content?.split(/(?<= )/) ?? [])
    chunk([{ index: 0, delta: { content: word }, finish_reason: null }]);
  await turn.until;
  for (const call of calls) chunk([{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }]);
  chunk([{ index: 0, delta: {}, finish_reason }]);
  chunk([], { usage });
  response.end('data: [DONE]\n\n');
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
