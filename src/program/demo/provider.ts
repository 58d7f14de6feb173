import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { complete, deltaOf, messageOf, usageOf } from './completion.ts';
import type { DemoAgent } from './agent.ts';
import { editImages, generateImages } from './images.ts';
import { embed } from './embeddings.ts';
import { speak, transcribe } from './audio.ts';
import { createVideoApi, type VideoApi } from './videos.ts';
import { parseChatRequest, RequestError, type ChatRequest } from './request.ts';
import type { ToolServer } from './tool-server.ts';

/** The demo's chat models: `echo` repeats the prompt, `chat` answers a few topics by rules. */
const DEMO_MODELS = ['demo/echo', 'demo/chat'] as const;

/** The demo's embedding model, and its models for audio. */
const OTHER_MODELS = ['demo/embedding', 'demo/speech', 'demo/transcription'];

export interface DemoProvider {
  /** Base URL, including `/v1`. */
  readonly url: string;
  /** Address of the MCP server. */
  readonly toolsUrl: string;
  /** Address of the A2A agent. The path of its card is below it. */
  readonly agentUrl: string;
  close(): Promise<void>;
}

interface DemoOptions {
  /** Default 0: any free port. The server listens on 127.0.0.1. */
  readonly port?: number;
  /**
   * Milliseconds between the tokens of a stream, to imitate a real model. Default 20. A request's `pace_ms` or
   * `x-pace-ms` header overrides it.
   */
  readonly paceMs?: number;
  /** Current time in epoch milliseconds. Default: the system clock. */
  readonly now?: () => number;
  /** Rolls a die: a whole number from 1 to `sides`. Default: random. */
  readonly roll?: (sides: number) => number;
}

const BODY_BYTES_MAX = 32 << 20;
const PACE_MS = 20;
const MCP_PATH = '/mcp';
const AGENT_PATH = '/agent';

/**
 * Starts the demo provider on 127.0.0.1. It serves chat completions (every answer has its usage), embeddings, a list of
 * models, images, videos, an MCP server, an A2A agent, and a health check.
 */
export async function runDemoProvider(options: DemoOptions = {}): Promise<DemoProvider> {
  const around = { now: options.now ?? Date.now, roll: options.roll ?? ((sides: number) => randomInt(1, sides + 1)) };
  const listening = Promise.withResolvers<void>();
  // The SDKs take a while to load. Loading begins after the server listens, so that it doesn't delay the start.
  const toolServer = listening.promise.then(async () => (await import('./tool-server.ts')).createToolServer(around));
  const agent = listening.promise.then(async () => (await import('./agent.ts')).createDemoAgent(around));
  const videoApi = createVideoApi(around.now);
  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url?.split('?')[0] ?? '';
    if (path === MCP_PATH) return useTools(request, response, await toolServer);
    if (path.startsWith(AGENT_PATH)) return askAgent(request, response, await agent);
    return handle(request, response, options.paceMs ?? PACE_MS, videoApi);
  };
  const server = createServer((request, response) => {
    response.on('error', () => {});
    route(request, response).catch((error: unknown) => fail(response, error));
  });
  // The gateway reuses idle connections. With the long timeout it is unlikely that the gateway picks a connection just
  // when it is closed here.
  server.keepAliveTimeout = 120_000;
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  setImmediate(listening.resolve);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    toolsUrl: `http://127.0.0.1:${port}${MCP_PATH}`,
    agentUrl: `http://127.0.0.1:${port}${AGENT_PATH}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  paceMs: number,
  videoApi: VideoApi,
): Promise<void> {
  const route = `${request.method} ${request.url?.split('?')[0]}`;
  if (route === 'GET /health') return sendJson(response, 200, { status: 'ok' });
  if (route === 'GET /v1/models') {
    return sendJson(response, 200, {
      object: 'list',
      data: [...DEMO_MODELS, ...OTHER_MODELS].map((id) => ({
        id,
        object: 'model',
        created: 1_760_000_000,
        owned_by: 'tollgate-demo',
      })),
    });
  }
  if (route === 'POST /v1/images/generations')
    return sendJson(response, 200, generateImages(await readJson(request), Math.floor(Date.now() / 1000)));
  if (route === 'POST /v1/images/edits')
    return sendJson(response, 200, await editImages(await readForm(request), Math.floor(Date.now() / 1000)));
  if (route === 'POST /v1/embeddings') return sendJson(response, 200, embed(await readJson(request)));
  if (route === 'POST /v1/audio/speech') {
    const { type, bytes } = speak(await readJson(request));
    return send(response, 200, type, bytes);
  }
  if (route === 'POST /v1/audio/transcriptions' || route === 'POST /v1/audio/translations') {
    const { type, text } = await transcribe(await readForm(request));
    return send(response, 200, type, Buffer.from(text));
  }
  const [method = '', path = ''] = route.split(' ');
  if (path.startsWith('/v1/videos') && (await videoApi(method, path, () => readJson(request), response))) return;
  if (route !== 'POST /v1/chat/completions')
    return sendError(response, 404, 'not_found', `There is no ${route} here.`, null);
  const chat = parseChatRequest(await readJson(request));
  if (!DEMO_MODELS.some((model) => model === chat.model || model.endsWith(`/${chat.model}`))) {
    return sendError(
      response,
      404,
      'model_not_found',
      `The demo has no model ${JSON.stringify(chat.model.slice(0, 100))}; it has ${DEMO_MODELS.join(' and ')}.`,
      'model',
    );
  }
  const header = Number(request.headers['x-pace-ms'] ?? NaN);
  const pace = chat.paceMs ?? (header >= 0 && header <= 10_000 ? header : paceMs);
  const id = `chatcmpl-${randomBytes(12).toString('hex')}`;
  const created = Math.floor(Date.now() / 1000);
  if (chat.stream) return stream(response, chat, { id, created, pace });
  const choices = complete(chat, id);
  sendJson(response, 200, {
    id,
    object: 'chat.completion',
    created,
    model: chat.model,
    choices: choices.map((choice, index) => ({
      index,
      message: messageOf(choice),
      finish_reason: choice.finishReason,
    })),
    usage: usageOf(chat, choices),
  });
}

/**
 * Sends the choices interleaved, one token of each at a time. Then sends the finish reasons, the usage and `[DONE]`.
 * Stops if the client leaves.
 */
async function stream(
  response: ServerResponse,
  chat: ChatRequest,
  { id, created, pace }: { id: string; created: number; pace: number },
): Promise<void> {
  const clientGone = new AbortController();
  response.once('close', () => clientGone.abort());
  const choices = complete(chat, id);
  const event = async (parts: object): Promise<void> => {
    const text = `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model: chat.model, ...parts })}\n\n`;
    if (!response.write(text)) await once(response, 'drain', { signal: clientGone.signal });
  };
  const choiceEvent = (index: number, delta: object, finishReason: string | null): Promise<void> =>
    event({ choices: [{ index, delta, finish_reason: finishReason }] });

  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
  try {
    for (const index of choices.keys()) await choiceEvent(index, { role: 'assistant', content: '' }, null);
    const longest = Math.max(...choices.map((choice) => choice.pieces.length));
    for (let position = 0; position < longest; position += 1) {
      clientGone.signal.throwIfAborted();
      if (pace > 0) await pause(pace, undefined, { signal: clientGone.signal });
      for (const [index, choice] of choices.entries()) {
        const piece = choice.pieces[position];
        if (piece !== undefined) await choiceEvent(index, deltaOf(piece), null);
      }
    }
    for (const [index, choice] of choices.entries()) await choiceEvent(index, {}, choice.finishReason);
    await event({ choices: [], usage: usageOf(chat, choices) });
    response.end('data: [DONE]\n\n');
  } catch (error) {
    if (!clientGone.signal.aborted) throw error;
  }
}

/**
 * Values of Host and Origin that are allowed. They keep web pages out, even if a page's own name resolves to this
 * machine (DNS rebinding).
 */
const LOCAL = /^(?:https?:\/\/)?(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i;

function refusesPost(request: IncomingMessage, response: ServerResponse, what: string): boolean {
  const { origin, host = '' } = request.headers;
  if (!LOCAL.test(host) || (origin !== undefined && !LOCAL.test(origin))) {
    sendError(response, 403, 'permission_denied', `${what} for programs of this machine.`, null);
    return true;
  }
  if (request.method === 'POST') return false;
  response.setHeader('allow', 'POST');
  sendError(response, 405, 'invalid_request_error', 'POST one JSON-RPC message.', null);
  return true;
}

async function askAgent(request: IncomingMessage, response: ServerResponse, agent: DemoAgent): Promise<void> {
  const path = request.url!.split('?')[0]!.slice(AGENT_PATH.length);
  if (request.method === 'GET' && path === '/.well-known/agent-card.json')
    return sendJson(response, 200, agent.card(`http://127.0.0.1:${request.socket.localPort}${AGENT_PATH}`));
  if (path !== '' && path !== '/')
    return sendError(response, 404, 'not_found', `There is no ${request.url} here.`, null);
  if (refusesPost(request, response, 'The agent is')) return;
  await agent.answer(await readText(request), request.headers, response);
}

async function useTools(request: IncomingMessage, response: ServerResponse, toolServer: ToolServer): Promise<void> {
  if (refusesPost(request, response, 'These tools are')) return;
  const headers = new Headers(
    Object.entries(request.headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
  // Clients such as plain curl send neither header. The body is always JSON.
  headers.set('content-type', 'application/json');
  headers.set('accept', 'application/json, text/event-stream');
  const reply = await toolServer(
    new Request(`http://${request.headers.host}${MCP_PATH}`, {
      method: 'POST',
      headers,
      body: await readText(request),
    }),
  );
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  if (reply.body === null) response.end();
  else await pipeline(reply.body, response);
}

async function readForm(request: IncomingMessage): Promise<FormData> {
  const body = new Uint8Array(await readBytes(request));
  try {
    // oxlint-disable-next-line typescript/no-deprecated -- it is a demo, for this machine alone
    return await new Response(body, { headers: { 'content-type': request.headers['content-type'] ?? '' } }).formData();
  } catch {
    throw new RequestError('The body is not a form.', null);
  }
}

const readText = async (request: IncomingMessage): Promise<string> => (await readBytes(request)).toString('utf8');

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new RequestError('The request is larger than 32 MiB.', null);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = await readText(request);
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError('The body is not JSON.', null);
  }
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) response.destroy();
  else if (error instanceof RequestError) sendError(response, 400, 'invalid_request_error', error.message, error.param);
  else sendError(response, 500, 'server_error', 'The demo provider failed.', null);
}

function sendError(
  response: ServerResponse,
  status: number,
  type: string,
  message: string,
  param: string | null,
): void {
  sendJson(response, status, { error: { message, type, param, code: status } });
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, 'application/json', Buffer.from(JSON.stringify(value)));
}

function send(response: ServerResponse, status: number, type: string, bytes: Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.byteLength }).end(bytes);
}

/**
 * Runs the demo provider as a program. Prints `{"url": …, "toolsUrl": …, "agentUrl": …}`. The program exits when
 * the process that started it ends, because then the IPC channel or the stdin pipe closes.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '0' }, 'pace-ms': { type: 'string', default: String(PACE_MS) } },
  });
  const provider = await runDemoProvider({ port: Number(values.port), paceMs: Number(values['pace-ms']) });
  const end = (): never => process.exit(0);
  process.once('disconnect', end).once('SIGTERM', end);
  const stdin = fstatSync(0);
  if (stdin.isFIFO() || stdin.isSocket()) process.stdin.on('end', end).on('error', end).resume();
  const { url, toolsUrl, agentUrl } = provider;
  process.stdout.write(`${JSON.stringify({ url, toolsUrl, agentUrl })}\n`);
}

if (import.meta.main) await main();
