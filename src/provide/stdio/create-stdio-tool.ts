import type { Forward } from '../forward.ts';
import { createStdioForward } from './forward-to-stdio.ts';
import { createSessions } from './sessions.ts';
import { superviseServer, type SupervisorOptions } from './supervisor.ts';

/** A tool that this proxy runs: its processes, and the handler of its calls. */
export interface StdioTool {
  readonly forward: Forward;
  /** Ends the open streams, which have no end of their own. */
  drain(): void;
  /** Ends every process gracefully. */
  stop(): Promise<void>;
  /** Kills every process immediately. */
  kill(): void;
}

/** Starts the tool's process. A legacy server that isn't shared gets one more process for each session. */
export function createStdioTool(options: SupervisorOptions): StdioTool {
  const supervisor = superviseServer(options);
  const sessions = createSessions(options);
  return {
    forward: createStdioForward({ supervisor, sessions, shared: options.target.shared }),
    drain() {
      supervisor.drain();
      sessions.drain();
    },
    async stop() {
      await Promise.all([supervisor.stop(), sessions.stop()]);
    },
    kill() {
      supervisor.kill();
      sessions.kill();
    },
  };
}
