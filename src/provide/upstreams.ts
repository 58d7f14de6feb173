import { createRequire } from 'node:module';
import type { Agent } from 'undici';
import type { ServiceConfig } from '#config';
import { createCallTable } from './call-table.ts';
import { createForward, type Forward } from './forward.ts';
import type { StopTimes } from './stdio/child-process.ts';
import { createStdioTool, type StdioTool } from './stdio/create-stdio-tool.ts';
import type { SupervisorOptions } from './stdio/supervisor.ts';

// Undici's index has its caches, mocks, fetch and WebSocket too: 109 files. An agent needs 22 of them.
const HttpAgent = createRequire(import.meta.url)('undici/lib/dispatcher/agent.js') as typeof Agent;

interface UpstreamsOptions extends Pick<SupervisorOptions, 'env' | 'version' | 'log' | 'random' | 'now'> {
  readonly services: readonly ServiceConfig[];
  /** Until the head of an upstream's reply. */
  readonly headTimeoutMs: number;
  /** Time for a tool's process to end. */
  readonly toolStop: StopTimes;
}

/** The upstreams behind a proxy: HTTP services, and tools whose processes it runs. */
export interface Upstreams {
  /** Passes one call on to its service. */
  readonly serve: ReturnType<typeof createCallTable>;
  /** Ends the streams that would never end by themselves. */
  drain(): void;
  /** Ends every process in good order. */
  stop(): Promise<void>;
  /** Ends every process at once. */
  kill(): void;
}

const CONNECT_MS = 10_000;

/** Starts the processes of all tools. */
export function startUpstreams(options: UpstreamsOptions): Upstreams {
  const { services, log, toolStop, headTimeoutMs } = options;
  const tools: StdioTool[] = [];
  // Silence inside a reply is the gateway's to judge: it cancels the call.
  const dispatcher = new HttpAgent({
    allowH2: false,
    headersTimeout: headTimeoutMs,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_MS },
  });

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
