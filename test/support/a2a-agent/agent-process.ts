import { join } from 'node:path';
import { findFreePort } from '../free-port.ts';
import { createKeeper } from '../server-process.ts';
import type { AgentOptions, EndState } from './agent.ts';

/** An agent in its own process. The process ends with this one at the latest. */
export interface AgentProcess {
  readonly url: string;
  /** Resolves with the id of a waiting task, as soon as there is one. */
  waits(): Promise<string>;
  finish(taskId: string, state?: EndState): Promise<void>;
  /** Sends SIGKILL, which simulates a crash. Resolves when the process has ended. */
  kill9(): Promise<void>;
  /** Starts it again at the same address, without its earlier tasks. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startAgentProcess(options: AgentOptions = {}): Promise<AgentProcess> {
  const keeper = createKeeper([]);
  const port = options.port ?? (await findFreePort());
  const start = async () => {
    const child = keeper.start({
      file: process.execPath,
      args: [join(import.meta.dirname, 'agent-child.ts'), JSON.stringify({ ...options, port })],
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
    });
    await child.wrote(' end\n');
    return { child, orders: /orders at (\S+) end/u.exec(child.output())![1]! };
  };
  const order = async (path: string) => {
    const response = await fetch(`${current.orders}${path}`);
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  };
  const kill9 = async () => {
    current.child.signal('SIGKILL');
    await current.child.exited;
  };
  let current: Awaited<ReturnType<typeof start>>;
  try {
    current = await start();
  } catch (error) {
    await keeper.close();
    throw error;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    waits: () => order('/waits'),
    finish: async (taskId, state = 'completed') =>
      void (await order(`/finish?task=${encodeURIComponent(taskId)}&state=${state}`)),
    kill9,
    async restart() {
      await kill9();
      current = await start();
    },
    stop: () => keeper.close(),
  };
}
