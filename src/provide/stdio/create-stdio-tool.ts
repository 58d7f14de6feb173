import type { Forward } from '../forward.ts';
import { createStdioForward } from './forward-to-stdio.ts';
import { createSessions } from './sessions.ts';
import { superviseServer, type SupervisorOptions } from './supervisor.ts';

/** A tool that this proxy runs: its processes, and the door to them. */
export interface StdioTool {
  readonly forward: Forward;
  /** Ends the streams that would never end by themselves. */
  drain(): void;
  /** Ends every process in good order. */
  stop(): Promise<void>;
  /** Ends them at once. */
  kill(): void;
}

/** Starts the tool's process. A legacy server that is not shared gets one more for each session. */
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
