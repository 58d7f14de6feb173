import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { HONEST } from './provider/behaviour.ts';
import type { Behaviour, Instruction } from './provider/behaviour.ts';
import type { LoggedCall } from './provider/log.ts';
import { completionBody, plan, streamSegments } from './provider/reply.ts';
import { commandsOf, readChatRequest } from './provider/request.ts';
import type { ChatRequest } from './provider/request.ts';
import { cutHead, sendBody, silence } from './provider/send-reply.ts';

export type { Behaviour, Instruction, UsageClaim } from './provider/behaviour.ts';
export type { LoggedCall } from './provider/log.ts';

/**
 * An OpenAI-compatible service on a real socket that misbehaves on request. Three sources set the behaviour of a
 * request, and later ones override earlier ones: commands in the model's name, commands in the last user message, and
 * the first queued instruction. `provider/behaviour.ts` lists the commands.
 */
export interface TestProvider {
  /** Base URL with `/v1`, as in `params.api_base`. */
  readonly url: string;
  readonly port: number;
  /** Every chat request, in order of arrival. */
  readonly log: LoggedCall[];
  /** Queues behaviours. Each of the next chat requests uses one. */
  instruct(...instructions: readonly Instruction[]): void;
  /** Delays every answer until this promise resolves. null removes the delay. */
  hold(until: Promise<unknown> | null): void;
  /** Resolves when the log has this many requests and all of them have ended. */
  settled(count: number): Promise<void>;
  /** Number of open sockets. */
  connections(): Promise<number>;
  stop(): Promise<void>;
}

export interface TestProviderOptions {
  readonly port?: number;
  /** The most calls in the log. Default: all. Benchmarks use 0. */
  readonly logMax?: number;
}

export async function startProvider(options: TestProviderOptions = {}): Promise<TestProvider> {
  const log: LoggedCall[] = [];
  const queue: Instruction[] = [];
  const logMax = options.logMax ?? Infinity;
  let calls = 0;
  let held: Promise<unknown> | null = null;
  const arrivals = new EventTarget();

  const server = createServer((request, response) => {
    // A client that leaves is noticed at the next write. The listener is needed because an unhandled error event would
    // end the process.
    response.on('error', () => {});
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent)
        sendJson(response, 500, {
          error: { message: `test provider: ${String(error)}`, type: 'test_error', code: 500 },
        });
      else response.destroy();
    });
  });
  // Idle connections stay open, so that no client picks one just when it is closed.
  server.keepAliveTimeout = 120_000;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?')[0] ?? '';
    if (request.method === 'GET' && path === '/v1/models')
      return sendJson(response, 200, {
        object: 'list',
        data: [{ id: 'test/model', object: 'model', created: 1_760_000_000, owned_by: 'test' }],
      });
    if (request.method === 'GET' && path === '/log') return sendJson(response, 200, log);
    if (request.method !== 'POST' || path !== '/v1/chat/completions')
      return sendJson(response, 404, {
        error: { message: `no ${request.method} ${path} here`, type: 'not_found', code: 404 },
      });
    const text = await readText(request);
    const body = parseJson(text);
    const chat = readChatRequest(body);
    if (chat === null)
      return sendJson(response, 400, {
        error: { message: 'that is no chat request', type: 'invalid_request_error', code: 400 },
      });
    const behaviour: Behaviour = { ...HONEST, ...commandsOf(chat), ...queue.shift() };
    const ended = Promise.withResolvers<void>();
    const planned = plan(chat, behaviour);
    calls += 1;
    const call: LoggedCall = {
      id: `chatcmpl-test-${calls}`,
      headers: request.headers,
      text,
      body,
      behaviour,
      promptTokens: planned.prompt,
      plannedTokens: planned.completion,
      completionTokens: 0,
      textBytes: 0,
      usages: [],
      finishReason: planned.finishReason,
      bytes: 0,
      end: null,
      ended: ended.promise,
    };
    if (log.length < logMax) log.push(call);
    arrivals.dispatchEvent(new Event('call'));
    try {
      await held;
      await respond(chat, behaviour, call, response);
    } finally {
      ended.resolve();
    }
  }

  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    log,
    instruct(...instructions) {
      queue.push(...instructions);
    },
    hold(until) {
      held = until;
    },
    async settled(count) {
      while (log.length < count) await once(arrivals, 'call');
      await Promise.all(log.map((call) => call.ended));
    },
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function respond(
  chat: ChatRequest,
  behaviour: Behaviour,
  call: LoggedCall,
  response: ServerResponse,
): Promise<void> {
  if (behaviour.headDelayMs > 0 && !(await waited(behaviour.headDelayMs, response))) {
    call.end = 'client_closed';
    return;
  }
  if (behaviour.cutHeadAt !== null) {
    await cutHead(response, behaviour.status, behaviour.cutHeadAt);
    call.end = 'cut';
    return;
  }
  const planned = plan(chat, behaviour);
  const failed = behaviour.status !== 200;
  response.statusCode = behaviour.status;
  if (behaviour.retryAfterS !== null) response.setHeader('retry-after', String(behaviour.retryAfterS));
  const segments = failed
    ? [{ ...errorBody(behaviour), tokens: 0, text: '', usage: null }]
    : chat.stream
      ? streamSegments(call.id, chat, behaviour, planned)
      : [completionBody(call.id, chat, behaviour, planned)];
  if (Array.isArray(segments)) response.setHeader('content-length', segments[0]?.bytes.length ?? 0);
  response.setHeader(
    'content-type',
    failed ? ERROR_TYPES[behaviour.errorBody] : chat.stream ? 'text/event-stream; charset=utf-8' : 'application/json',
  );
  const delivery = {
    get bytes() {
      return call.bytes;
    },
    set bytes(value: number) {
      call.bytes = value;
    },
    delivered(segment: { readonly tokens: number; readonly text: string; readonly usage: string | null }) {
      call.completionTokens += segment.tokens;
      call.textBytes += Buffer.byteLength(segment.text);
      if (segment.usage !== null) call.usages.push(segment.usage);
    },
  };
  const end = await sendBody(response, segments, behaviour, delivery);
  call.end = end === 'finished' && failed ? 'error_status' : end;
}

const ERROR_TYPES = {
  json: 'application/json',
  garbage: 'application/json',
  html: 'text/html',
  empty: 'text/plain',
} as const;

function errorBody(behaviour: Behaviour): { readonly bytes: Buffer } {
  switch (behaviour.errorBody) {
    case 'json': {
      const type =
        behaviour.status >= 500
          ? 'server_error'
          : behaviour.status === 429
            ? 'rate_limit_error'
            : 'invalid_request_error';
      return {
        bytes: Buffer.from(
          JSON.stringify({
            error: {
              message: `the test provider was told to answer ${behaviour.status}`,
              type,
              code: behaviour.status,
            },
          }),
        ),
      };
    }
    case 'garbage':
      return { bytes: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x00, 0x5b, 0x5b, 0x0a]) };
    case 'html':
      return { bytes: Buffer.from('<html><body><h1>Bad Gateway</h1></body></html>') };
    case 'empty':
      return { bytes: Buffer.alloc(0) };
  }
}

/** Returns false if the client left before the time was over. */
async function waited(ms: number, response: ServerResponse): Promise<boolean> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  response.once('close', leave);
  try {
    await silence(ms, left.signal);
    return true;
  } catch {
    return false;
  } finally {
    response.off('close', leave);
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '0' }, 'log-max': { type: 'string', default: '0' } },
  });
  const provider = await startProvider({ port: Number(values.port), logMax: Number(values['log-max']) });
  process.stdout.write(`${JSON.stringify({ url: provider.url })}\n`);
  const stdin = fstatSync(0);
  // The process that started this provider has the other end of its stdin. When that process ends, so does the
  // provider.
  if (stdin.isFIFO() || stdin.isSocket()) process.stdin.on('end', () => process.exit(0)).resume();
}
