import type { ServerHttp2Stream } from 'node:http2';
import type { Tunnels } from '#network';
import type { Poll, Task } from '#tasks';
import type { Mcp } from '#mcp';
import { NO_FUNDS, type OpenPayments } from './payments.ts';

/**
 * Modules that others use before they are open, because modules need each other in circles: metrics show the figures of
 * tunnels, and tunnels report to metrics. Each has an empty stand-in until its phase replaces it.
 */
export interface LateBound {
  tunnels: Pick<Tunnels, 'session' | 'count'>;
  mcp: Pick<Mcp, 'counts' | 'hasTool'>;
  bodies: { heldBytes(): number; waitingCount(): number };
  funds: Pick<OpenPayments, 'figures'>;
  pollAgent: Poll;
  giveFile: (stream: ServerHttp2Stream, asked: string) => void;
  gaveUpVideo: (task: Task) => Promise<void>;
}

export const createLateBound = (): LateBound => ({
  tunnels: { session: () => null, count: () => ({ connections: 0, streams: 0 }) },
  mcp: { counts: () => ({ sessions: 0, heldCalls: 0, listens: 0 }), hasTool: () => false },
  bodies: { heldBytes: () => 0, waitingCount: () => 0 },
  funds: NO_FUNDS,
  pollAgent: async () => null,
  gaveUpVideo: async () => {},
  giveFile: (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
});
