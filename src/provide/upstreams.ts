import { createRequire } from 'node:module';
import type { Agent } from 'undici';
import type { ServiceConfig } from '#config';
import { skipInterimReplies } from '#wire';
import { createCallTable } from './call-table.ts';
import { createForward, type Forward } from './forward.ts';
import type { StopTimes } from './stdio/child-process.ts';
import { createStdioTool, type StdioTool } from './stdio/create-stdio-tool.ts';
import type { SupervisorOptions } from './stdio/supervisor.ts';

// The index of undici also loads caches, mocks, fetch and WebSocket: 109 files. An agent needs 22 of them.
const HttpAgent = createRequire(import.meta.url)('undici/lib/dispatcher/agent.js') as typeof Agent;

interface UpstreamsOptions extends Pick<SupervisorOptions, 'env' | 'version' | 'log' | 'random' | 'now'> {
  readonly services: readonly ServiceConfig[];
  /** Timeout for the head of an upstream's reply. */
  readonly headTimeoutMs: number;
  /** Timeouts for ending a tool's process. */
  readonly toolStop: StopTimes;
}

/** The upstreams behind a proxy: HTTP services, and tools whose processes the proxy runs. */
export interface Upstreams {
  /** Passes one call to its service. */
  readonly serve: ReturnType<typeof createCallTable>;
  /** Ends the subscription streams, which have no end of their own. */
  drain(): void;
  /** Ends every process gracefully. */
  stop(): Promise<void>;
  /** Kills every process immediately. */
  kill(): void;
}

const CONNECT_MS = 10_000;

/** Starts the processes of all tools. */
export function startUpstreams(options: UpstreamsOptions): Upstreams {
  const { services, log, toolStop, headTimeoutMs } = options;
  const tools: StdioTool[] = [];
  // There is no timeout inside a reply, because the gateway judges that: it cancels the call.
  const dispatcher = skipInterimReplies(
    new HttpAgent({
      allowH2: false,
      headersTimeout: headTimeoutMs,
      bodyTimeout: 0,
      connect: { timeout: CONNECT_MS },
    }),
  );

  function forwardOf({ service: { name: service, primitive }, target }: ServiceConfig): Forward {
    if (target.kind === 'command') {
      const tool = createStdioTool({ ...options, service, target, stopTimes: toolStop });
      tools.push(tool);
      return tool.forward;
    }
    return createForward({
      target,
      dispatcher,
      failed: (failure, error) => log.warn({ service, primitive, failure, error }, 'the upstream failed'),
    });
  }

  return {
    serve: createCallTable(services, forwardOf),
    drain() {
      for (const tool of tools) tool.drain();
    },
    async stop() {
      await Promise.all([...tools.map((tool) => tool.stop()), dispatcher.destroy()]);
    },
    kill() {
      for (const tool of tools) tool.kill();
      void dispatcher.destroy();
    },
  };
}
