import { constants, type ClientHttp2Stream } from 'node:http2';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import type { CommandTarget } from '../../../src/server/config/service.ts';
import type { StopTimes } from '../../../src/providers/proxy/stdio/child-process.ts';
import { runProxy, toolOfScript, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type RouterEnd, type TunnelReply, type TunnelRouter } from '../../support/tunnel-router.ts';

export const SCRIPT = fileURLToPath(new URL('../../support/stdio-mcp-server.ts', import.meta.url));
/** What clients of the Streamable HTTP transport accept. */
export const BOTH = 'application/json, text/event-stream';

/** Times that no process needs which ends by itself. */
export const PATIENT: StopTimes = { termMs: 60_000, killMs: 60_000 };

/** A proxy with one tool `t`, which is the stand-in of `test/support/stdio-mcp-server.ts`, for each test of a file. */
export interface StdioTool {
  readonly running: RunningProxy;
  readonly end: RouterEnd;
  /** Home of the proxy. */
  readonly dir: string;
  start(
    args?: readonly string[],
    env?: Readonly<Record<string, string>>,
    changes?: Partial<CommandTarget>,
    toolStop?: StopTimes,
  ): Promise<void>;
  /** POSTs a message, or a text as it is. */
  post(message: unknown, headers?: Readonly<Record<string, string>>): Promise<TunnelReply>;
  /** Begins a session: the headers that its messages carry. */
  session(): Promise<Readonly<Record<string, string>>>;
  /** Opens the reply to a message, or with null the stream of a session's own. */
  open(message: object | null, headers: Readonly<Record<string, string>>): ClientHttp2Stream;
  /** What the process wrote down so far. */
  journalled(): string[];
  /** The messages that it got whose line holds this text. */
  got(text: string): Record<string, unknown>[];
}

/** `always` changes the tool of every test. */
export function stdioTool(always: Partial<CommandTarget> = {}): StdioTool {
  let dir: string;
  let router: TunnelRouter;
  let running: RunningProxy;
  let end: RouterEnd;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'tollgate-stdio-'));
    router = await startTunnelRouter();
  });
  afterEach(async () => {
    running.proxy.kill();
    await router.stop();
    rmSync(dir, { recursive: true });
  });
  const tool: StdioTool = {
    get running() {
      return running;
    },
    get end() {
      return end;
    },
    get dir() {
      return dir;
    },
    async start(args = [], env = {}, changes = {}, toolStop = { termMs: 100, killMs: 500 }) {
      const service = toolOfScript('t', SCRIPT, [`journal=${join(dir, 'journal')}`, ...args], env, {
        ...always,
        ...changes,
      });
      running = runProxy({
        url: router.url,
        services: [service],
        options: {
          env: { PATH: process.env['PATH'], HOME: dir, SECRET_OF_THE_PROXY: 'env-canary' },
          limits: { toolStop, lateMs: 50 },
        },
      });
      end = await router.next();
      await end.accept();
    },
    post: (message, headers = {}) =>
      end.call(
        { ':path': '/tool/t', 'content-type': 'application/json', ...headers },
        typeof message === 'string' ? message : JSON.stringify(message),
      ),
    async session() {
      const { status, headers } = await tool.post(INITIALIZE, { accept: BOTH });
      const id = headers['mcp-session-id'];
      if (status !== 200 || typeof id !== 'string') throw new Error(`no session began: ${status}`);
      return { accept: BOTH, 'mcp-session-id': id };
    },
    open: (message, headers) =>
      end.open(
        { ':path': '/tool/t', ':method': message ? 'POST' : 'GET', ...headers },
        message ? JSON.stringify(message) : undefined,
      ),
    journalled: () => readFileSync(join(dir, 'journal'), 'utf8').split('\n'),
    got: (text) =>
      tool
        .journalled()
        .filter((line) => line.startsWith('line ') && line.includes(text))
        .map((line) => JSON.parse(line.slice(5)) as Record<string, unknown>),
  };
  return tool;
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};

export const callOf = (name: string, args: unknown = {}, id: string | number = 1, meta?: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta ? { _meta: meta } : {}) },
});

export const jsonOf = ({ body }: TunnelReply) =>
  JSON.parse(body.toString()) as { id: unknown; result: { content: { text: string }[] }; error: { code: number } };

/** What the stand-in's tools answer with. */
export const textOf = (reply: TunnelReply) => JSON.parse(jsonOf(reply).result.content[0]!.text) as unknown;

/** The events of a reply, one by one. */
export interface EventReader {
  readonly status: Promise<number>;
  /** The data of the next event. Rejects when there is none. */
  next(): Promise<string>;
  /** Settles when the reply is over, with whether it was broken off. */
  readonly over: Promise<'complete' | 'broken off'>;
}

export function readEvents(stream: ClientHttp2Stream): EventReader {
  const events: string[] = [];
  let text = '';
  let wake = Promise.withResolvers<void>();
  let ended = false;
  const rouse = () => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  const status = Promise.withResolvers<number>();
  const over = Promise.withResolvers<'complete' | 'broken off'>();
  stream.on('response', (headers) => status.resolve(headers[':status'] ?? 0));
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (text + chunk).split('\n\n');
    text = parts.pop()!;
    events.push(...parts.map((event) => /^event: message\ndata: (.*)$/.exec(event)![1]!));
    rouse();
  });
  stream.on('close', () => {
    ended = true;
    over.resolve(stream.rstCode === constants.NGHTTP2_NO_ERROR && stream.readableEnded ? 'complete' : 'broken off');
    rouse();
  });
  return {
    status: status.promise,
    over: over.promise,
    async next() {
      while (events.length === 0) {
        if (ended) throw new Error('there is no other event');
        await wake.promise;
      }
      return events.shift()!;
    },
  };
}
