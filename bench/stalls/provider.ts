import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AGENT, CHAT_STREAM, CHAT_WHOLE, manyTools, TOOL, type Answer } from './answers.ts';

/**
 * A provider of the worst answers. The path selects kind and name: `/chat/<name>/v1`, `/stream/<name>/v1`,
 * `/tool/<name>`, `/agent/<name>`, `/many`, `/card`.
 */
export interface Provider {
  readonly url: string;
  stop(): void;
}

const OF: Readonly<Record<string, Readonly<Record<string, () => Answer>>>> = {
  chat: CHAT_WHOLE,
  stream: CHAT_STREAM,
  tool: TOOL,
  agent: AGENT,
};
const SMALL =
  '{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}';
export const MANY_TOOLS = 4_000;
const KEPT_BYTES = 900_000;
const CARD_BYTES = 250 * 1024;

export async function startProvider(): Promise<Provider> {
  const made = new Map<string, Answer>();
  const answerOf = (kind: string, name: string): Answer => {
    const key = `${kind} ${name}`;
    let answer = made.get(key);
    if (!answer) made.set(key, (answer = OF[kind]![name]!()));
    return answer;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [, kind = '', written = ''] = request.url!.split('/');
      const name = decodeURIComponent(written);
      if (request.method === 'GET')
        return json(response, cardOf(`${url}/${kind}/${written}`, kind === 'card' ? CARD_BYTES : 0));
      if (kind === 'small') return json(response, SMALL);
      if (kind === 'kept') return json(response, SMALL.replace('hello', 'a'.repeat(KEPT_BYTES)));
      if (kind === 'chat' || kind === 'stream') return whole(response, answerOf(kind, name));
      const body = Buffer.concat(chunks);
      // Only the id and the method are needed of a large body.
      const { id, method } = JSON.parse(body.toString()) as { readonly id?: string | number; readonly method: string };
      if (kind === 'tool' && method === 'tools/call') return withId(response, answerOf(kind, name), id);
      if (kind === 'agent' && name !== 'small') return withId(response, answerOf(kind, name), id);
      json(
        response,
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          result: method.includes('essage') ? HELLO : listing(kind === 'many' && method === 'tools/list' ? MANY : ONE),
        }),
      );
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const HELLO = { kind: 'message', role: 'agent', messageId: 'a-1', parts: [{ kind: 'text', text: 'hello' }] };
const ONE: readonly unknown[] = [{ name: 'read', inputSchema: { type: 'object' } }];
const MANY = JSON.parse(`[${manyTools(MANY_TOOLS)}]`) as readonly unknown[];
const listing = (tools: readonly unknown[]) => ({
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  serverInfo: { name: 'stalls', version: '1' },
  resultType: 'complete',
  tools,
});

const json = (response: ServerResponse, text: string) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
const whole = (response: ServerResponse, { type, bytes }: Answer) =>
  void response.writeHead(200, { 'content-type': type }).end(bytes);

function withId(response: ServerResponse, { type, bytes }: Answer, id: string | number | undefined): void {
  const written = JSON.stringify(id);
  response.writeHead(200, { 'content-type': type });
  let from = 0;
  for (let at = bytes.indexOf('"ID"'); at !== -1; at = bytes.indexOf('"ID"', from)) {
    response.write(bytes.subarray(from, at));
    response.write(written);
    from = at + 4;
  }
  response.end(bytes.subarray(from));
}

function cardOf(url: string, bytes: number): string {
  const skill = (index: number) => ({
    id: `s${index}`,
    name: `Skill ${index}`,
    description: 'Does a thing. '.repeat(8),
    tags: ['a', 'b'],
  });
  const skills = Array.from({ length: Math.max(1, Math.floor(bytes / 190)) }, (_, index) => skill(index));
  return JSON.stringify({
    protocolVersion: '0.3.0',
    name: 'Stalls',
    description: 'Answers at length.',
    url,
    preferredTransport: 'JSONRPC',
    version: '1',
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills,
  });
}
