import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import { runProxy, toolOfScript, type RunningProxy } from '../support/provider-proxy.ts';
import { startTunnelRouter, type RouterEnd, type TunnelReply, type TunnelRouter } from '../support/tunnel-router.ts';

export const SCRIPT = fileURLToPath(new URL('../support/stdio-mcp-server.ts', import.meta.url));
/** What clients of the Streamable HTTP transport accept. */
export const BOTH = 'application/json, text/event-stream';

/** A proxy with one tool `t`, which is the stand-in of `test/support/stdio-mcp-server.ts`, for each test of a file. */
export interface StdioTool {
  readonly running: RunningProxy;
  readonly end: RouterEnd;
  /** Home of the proxy. */
  readonly dir: string;
  start(args?: readonly string[], env?: Readonly<Record<string, string>>, command?: string): Promise<void>;
  /** POSTs a message, or a text as it is. */
  post(message: unknown, headers?: Readonly<Record<string, string>>): Promise<TunnelReply>;
  /** What the process wrote down so far. */
  journalled(): string[];
  /** The messages that it got whose line holds this text. */
  got(text: string): Record<string, unknown>[];
}

export function stdioTool(): StdioTool {
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
    async start(args = [], env = {}, command = process.execPath) {
      const { service, target } = toolOfScript('t', SCRIPT, [`journal=${join(dir, 'journal')}`, ...args], env);
      running = runProxy({
        url: router.url,
        services: [{ service, target: { ...(target as object), command } as typeof target }],
        options: {
          env: { PATH: process.env['PATH'], HOME: dir, SECRET_OF_THE_PROXY: 'env-canary' },
          limits: { toolStop: { termMs: 100, killMs: 500 } },
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
    journalled: () => readFileSync(join(dir, 'journal'), 'utf8').split('\n'),
    got: (text) =>
      tool
        .journalled()
        .filter((line) => line.startsWith('line ') && line.includes(text))
        .map((line) => JSON.parse(line.slice(5)) as Record<string, unknown>),
  };
  return tool;
}

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
