import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { geminiReply, messagesReply, responsesReply } from './native-replies.ts';
import { setTimeout as pause } from 'node:timers/promises';
import { box, tinyMp4 } from '../media/support/tiny-mp4.ts';

/**
 * What the one provider of the table does, in the words that it is sent; each of its primitives does the same.
 */
export type Deed = 'complete' | 'no-usage' | 'slow' | 'error' | 'hang' | 'over' | 'huge' | 'endless' | 'silent';

/** Completion tokens that a deed reports: 1 micro-USD each at the prices of the table. */
export const USED = 1_000;
const SLOW_MS = 150;
/** Of a reply that is too large. */
export const HUGE_BYTES = 200_000;
const DRIP_MS = 20;
/** What is said again and again where a reply has no end: nothing, in JSON and in a stream of events. */
const NOTHING = { json: ' ', events: ': nothing\n\n' } as const;

export interface PeerProvider {
  /** Up to and with `/v1`. */
  readonly modelUrl: string;
  readonly toolUrl: string;
  readonly agentUrl: string;
  /** Resolves when a call with this text has come; asked before it is made. */
  came(text: string): Promise<void>;
  calls(): number;
  close(): Promise<void>;
}

/** A model, an image model, a video model, an MCP server and an A2A agent in one process, on a real socket. */
export async function startPeerProvider(): Promise<PeerProvider> {
  let calls = 0;
  const waiting = new Map<string, () => void>();
  const came = (text: string) => {
    calls += 1;
    waiting.get(text)?.();
    waiting.delete(text);
  };
  const server = createServer((request, response) => {
    response.on('error', () => {});
    answer(request, response, came).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    modelUrl: `${base}/v1`,
    toolUrl: `${base}/mcp`,
    agentUrl: base,
    calls: () => calls,
    came: (text) => new Promise((resolve) => waiting.set(text, resolve)),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, came: (text: string) => void): Promise<void> {
  const json = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (request.url?.startsWith('/v1/videos/')) return film(request.url, response, json);
  if (request.method === 'GET') return void json(request.url?.includes('agent-card') ? 200 : 404, CARD);
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
  if (request.url === '/v1/videos') return videos(body, response, json, came);
  if (request.url?.startsWith('/v1/images/')) return images(body, response, json, came);
  if (request.url === '/v1/chat/completions') return model(body, response, json, came);
  if (request.url === '/v1/messages') return native(body, messagesReply, response, came);
  if (request.url?.startsWith('/v1/responses')) return native(body, responsesReply, response, came);
  if (request.url?.startsWith('/v1beta/models/'))
    return native({ ...body, stream: request.url.endsWith('alt=sse') }, geminiReply, response, came);
  const { id, method, params } = body as { id: unknown; method: string; params: Record<string, unknown> };
  const result = (value: unknown) => void json(200, { jsonrpc: '2.0', id, result: value });
  if (method === 'tools/list')
    return result({
      tools: [
        { name: 'do', inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
      ],
    });
  if (method === 'tools/call') {
    const { text } = params['arguments'] as { text: string };
    const done = await perform(text, response, came);
    if (done?.padding) return result({ content: [{ type: 'text', text: done.padding }] });
    if (done !== null)
      result({
        content: [{ type: 'text', text: `did ${text}` }],
        ...(done.used === null ? {} : { _meta: { 'tollgate/usage': { completion: done.used } } }),
      });
    return;
  }
  if (method === 'message/send') {
    const { parts } = params['message'] as { parts: { text: string }[] };
    const text = parts.map((part) => part.text).join('');
    const done = await perform(text, response, came);
    if (done?.padding)
      return result({
        kind: 'message',
        messageId: 'huge',
        role: 'agent',
        parts: [{ kind: 'text', text: done.padding }],
      });
    if (done !== null)
      result({
        kind: 'message',
        messageId: `re-${calls++}`,
        role: 'agent',
        parts: [{ kind: 'text', text: `did ${text}` }],
        ...(done.used === null ? {} : { metadata: { 'tollgate/usage': { completion: done.used } } }),
      });
    return;
  }
  json(200, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
}

let calls = 0;

interface Done {
  readonly used: number | null;
  /** What makes the reply too large. */
  readonly padding?: string;
}

/** Says something without meaning until whoever listens hangs up. */
function drip(response: ServerResponse, bytes: string): void {
  const timer = setInterval(() => response.write(bytes), DRIP_MS);
  response.on('close', () => clearInterval(timer));
}

/**
 * null where there is no answer: the response has been dealt with. A model has said something by `begin` before it
 * does not come to its end.
 */
async function perform(
  text: string,
  response: ServerResponse,
  came: (text: string) => void,
  begin?: () => keyof typeof NOTHING,
): Promise<Done | null> {
  came(text);
  const begun = () => begin?.() ?? (response.writeHead(200, { 'content-type': 'application/json' }).write(' '), 'json');
  switch (text.split(' ')[0] as Deed) {
    case 'complete':
      return { used: USED };
    case 'no-usage':
      return { used: null };
    case 'slow':
      await pause(SLOW_MS);
      return { used: USED };
    case 'error':
      response.writeHead(500, { 'content-type': 'text/plain' }).end('broken');
      return null;
    case 'hang':
      return null;
    case 'over':
      return { used: 1_000 * USED };
    case 'huge':
      return { used: null, padding: 'x'.repeat(HUGE_BYTES) };
    case 'endless':
      drip(response, NOTHING[begun()]);
      return null;
    case 'silent':
      begun();
      return null;
  }
}

/** Completion tokens and images cost the same: one image for each `USED`. */
async function images(
  { prompt }: Record<string, unknown>,
  response: ServerResponse,
  json: (status: number, body: unknown) => unknown,
  came: (text: string) => void,
): Promise<void> {
  const text = prompt as string;
  const done = await perform(text, response, came);
  if (done === null) return;
  const image = { b64_json: SMALLEST_PNG, revised_prompt: `did ${text}` };
  // One more than is asked for is past the budget.
  const data = Array.from({ length: Math.min(6, (done.used ?? 0) / USED) }, () => image);
  json(200, { created: 1, data, ...(done.padding ? { padding: done.padding } : {}) });
}

/** Jobs by their ids: what each says, and the seconds that its film plays; null for one that fails. */
const jobs = new Map<string, { readonly said: string; readonly seconds: number | null }>();

/** Completion tokens and seconds cost the same: one second for each `USED`. */
async function videos(
  { prompt }: Record<string, unknown>,
  response: ServerResponse,
  json: (status: number, body: unknown) => unknown,
  came: (text: string) => void,
): Promise<void> {
  const text = prompt as string;
  const done = await perform(text, response, came);
  if (done === null) return;
  const id = `job_${jobs.size}`;
  jobs.set(id, { said: `did ${text}`, seconds: done.used === null ? null : done.used / USED });
  json(200, { id, status: 'queued', ...(done.padding ? { padding: done.padding + done.padding } : {}) });
}

/** How a job stands, or its film. */
function film(url: string, response: ServerResponse, json: (status: number, body: unknown) => unknown): void {
  const [, id = '', content] = /^\/v1\/videos\/(job_\d+)(\/content)?$/.exec(url) ?? [];
  const { said, seconds } = jobs.get(id)!;
  if (content === undefined) return void json(200, { id, status: seconds === null ? 'failed' : 'completed' });
  const words = tinyMp4(seconds, Buffer.byteLength(said));
  words.write(said, words.indexOf('mdat') + 4);
  // A film with fewer bytes than any film of this length has is charged for less.
  const bytes = Buffer.concat([words, box('mdat', Buffer.alloc(64 * Math.ceil(seconds ?? 0)))]);
  response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': bytes.length }).end(bytes);
}

export const SMALLEST_PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function model(
  body: Record<string, unknown>,
  response: ServerResponse,
  json: (status: number, body: unknown) => unknown,
  came: (text: string) => void,
): Promise<void> {
  const messages = body['messages'] as { content: string | { text: string }[] }[];
  const { content } = messages.at(-1)!;
  const text = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  const said = `did ${text}`;
  const about = { id: 'up', created: 1, model: 'peer' };
  const chunk = (more: object) =>
    response.write(`data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', ...more })}\n\n`);
  const begin = () => {
    if (body['stream'] === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: said }, finish_reason: null }] });
      return 'events';
    }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .write(`{"choices":[{"message":{"content":${JSON.stringify(said)}}`);
    return 'json';
  };
  const done = await perform(text, response, came, begin);
  if (done === null) return;
  // As log probabilities do: much beside little.
  if (done.padding)
    return void response.end(
      begin() === 'json' ? `,"logprobs":"${done.padding}"}]}` : `: ${done.padding}\n\ndata: [DONE]\n\n`,
    );
  const usage =
    done.used === null ? undefined : { prompt_tokens: 0, completion_tokens: done.used, total_tokens: done.used };
  if (body['stream'] !== true) {
    const message = { role: 'assistant', content: said };
    return void json(200, {
      ...about,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      ...(usage ? { usage } : {}),
    });
  }
  begin();
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...(usage ? { usage } : {}) });
  response.end('data: [DONE]\n\n');
}

/** A model that speaks the client's wire itself. */
async function native(
  body: Record<string, unknown>,
  replyOf: typeof messagesReply,
  response: ServerResponse,
  came: (text: string) => void,
): Promise<void> {
  const {
    input,
    messages,
    contents,
    stream = false,
  } = body as {
    readonly input?: string;
    readonly messages?: readonly { readonly content: string }[];
    readonly contents?: readonly { readonly parts: readonly { readonly text: string }[] }[];
    readonly stream?: boolean;
  };
  const text = input ?? messages?.at(-1)?.content ?? contents!.at(-1)!.parts[0]!.text;
  const reply = replyOf(`did ${text}`, stream);
  const begin = () => {
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' }).write(reply.begun);
    return stream ? 'events' : 'json';
  };
  const done = await perform(text, response, came, begin);
  if (done === null) return;
  begin();
  response.end(done.padding ? reply.padded(done.padding) : reply.end(done.used));
}

const CARD = {
  name: 'Peer',
  description: 'Does as it is told.',
  protocolVersion: '0.3.0',
  version: '1',
  url: 'http://peer.example/',
  preferredTransport: 'JSONRPC',
  capabilities: {},
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'do', name: 'do', description: 'does', tags: ['peer'] }],
};
