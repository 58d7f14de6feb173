import { randomBytes } from 'node:crypto';
import type { ServerHttp2Stream } from 'node:http2';
import type { StopTimes } from './child-process.ts';
import { errorCodeOf, type RpcRequest, statusOfError } from './json-rpc.ts';
import type { ProcessOptions } from './message-process.ts';
import { createReply } from './reply.ts';
import { startSession, type Session } from './session.ts';

export const SESSION_HEADER = 'mcp-session-id';

/** The sessions of one tool: one process for each client that sent `initialize`. */
export interface Sessions {
  /**
   * Starts a session with the client's `initialize`, which is answered on `stream`. `consumer` identifies the session's
   * owner, as in CONSUMER_HEADER. `refused` is called with the error code if the process refuses `initialize`. Returns
   * false if there are too many sessions.
   */
  begin(request: RpcRequest, stream: ServerHttp2Stream, options: Begin): boolean;
  find(id: string): Session | undefined;
  /** Ends a session gracefully. `find` doesn't return it from now on. */
  end(id: string): Promise<void>;
  /** Ends the sessions' open streams, which have no end of their own. */
  drain(): void;
  /** Ends all sessions gracefully and starts no more. */
  stop(): Promise<void>;
  kill(): void;
}

interface Begin {
  readonly accept: string | undefined;
  readonly consumer: string;
  readonly refused: (code: number) => void;
}

interface SessionsOptions extends ProcessOptions {
  readonly stopTimes: StopTimes;
}

/** 144 bits, so that nobody can guess the id of another session. */
const ID_BYTES = 18;

export function createSessions(options: SessionsOptions): Sessions {
  const { service, target, log, stopTimes } = options;
  const byId = new Map<string, Session>();
  const places = createPlaces(target.sessionsMax);
  /** All sessions, including those that are ending, because their processes still run. */
  const running = new Set<Session>();
  let stopped = false;

  async function end(id: string, why: string): Promise<void> {
    const session = byId.get(id);
    if (!session || !byId.delete(id)) return;
    places.leave(id);
    log.debug({ service, why, sessions: byId.size }, 'a session of the tool ended');
    await session.stop(stopTimes);
  }

  return {
    begin(request, stream, { accept, consumer, refused }) {
      // Sessions that make room end gracefully, which takes a while. So up to twice the allowed number may run.
      if (stopped || running.size >= 2 * target.sessionsMax) return false;
      const leaves = places.makeRoom(consumer);
      if (leaves === null) return false;
      for (const other of leaves) void end(other, 'it makes room for another');
      const id = randomBytes(ID_BYTES).toString('base64url');
      const over = (why: string) => void end(id, why);
      const session = startSession({ ...options, idleMs: target.sessionIdleMs, over });
      byId.set(id, session);
      places.take(id, consumer, session);
      running.add(session);
      void session.ended.then((how) => {
        running.delete(session);
        places.leave(id);
        if (byId.delete(id)) log.warn({ service, how, sessions: byId.size }, 'the process of a session ended');
      });
      log.debug({ service, sessions: byId.size }, 'a session of the tool begins');

      let state: 'begins' | 'began' | 'refused' = 'begins';
      const headers = () => (state === 'refused' ? {} : { [SESSION_HEADER]: id });
      const reply = createReply({ stream, accept, id: request.idText, headers });
      // If the first reply doesn't arrive, the client doesn't know the session's id and could never use it.
      reply.whenOver(() => state !== 'began' && over('it did not begin'));
      session.ask(request, reply, (response) => {
        const code = errorCodeOf(response);
        state = code === null ? 'began' : 'refused';
        if (code === null) return 200;
        refused(code);
        return statusOfError(code);
      });
      return true;
    },
    find: (id) => byId.get(id),
    end: (id) => end(id, 'the client ended it'),
    drain() {
      for (const session of byId.values()) session.drain();
    },
    async stop() {
      stopped = true;
      for (const id of byId.keys()) void end(id, 'the proxy stops');
      await Promise.all([...running].map((session) => session.ended));
    },
    kill() {
      stopped = true;
      for (const session of running) session.kill();
    },
  };
}

/** The places for sessions of a tool, shared fairly between its consumers. */
interface Places {
  /**
   * Returns the ids of the sessions that must end before `consumer` may begin one. Empty if a place is free. null if no
   * place can be freed: every candidate is in use, and no consumer has more than its share.
   */
  makeRoom(consumer: string): readonly string[] | null;
  take(id: string, consumer: string, session: Pick<Session, 'busy' | 'usedAt'>): void;
  leave(id: string): void;
}

interface TakenSession {
  readonly id: string;
  readonly consumer: string;
  readonly session: Pick<Session, 'busy' | 'usedAt'>;
}

/**
 * The consumer with the most sessions gives up the one that was unused for the longest time. The new session already
 * counts for the consumer that asks, so nobody can get more places than the others. A session in use is ended only if
 * its consumer has more than its share.
 */
function createPlaces(max: number): Places {
  const sessions = new Map<string, TakenSession>();

  function makeRoom(consumer: string): readonly string[] | null {
    if (sessions.size < max) return [];
    const byConsumer = Map.groupBy(sessions.values(), (one) => one.consumer);
    const own = byConsumer.get(consumer) ?? [];
    // Only consumers that would still have more sessions than this one after it gets the place. Otherwise this consumer
    // gives up one of its own.
    const larger = [...byConsumer.values()]
      .filter((group) => group.length > own.length + 1)
      .sort((a, b) => b.length - a.length);
    const groups = larger.length > 0 ? larger : own.length > 0 ? [own] : [...byConsumer.values()];
    for (const group of groups) {
      const idle = longestUnused(group.filter(({ session }) => !session.busy()));
      if (idle) return [idle.id];
    }
    const share = Math.ceil(max / (byConsumer.size + (own.length === 0 ? 1 : 0)));
    return larger.length > 0 && larger[0]!.length > share ? [longestUnused(larger[0]!)!.id] : null;
  }

  return {
    makeRoom,
    take: (id, consumer, session) => void sessions.set(id, { id, consumer, session }),
    leave: (id) => void sessions.delete(id),
  };
}

function longestUnused(sessions: readonly TakenSession[]): TakenSession | undefined {
  return sessions.reduce<TakenSession | undefined>(
    (oldest, one) => (oldest && oldest.session.usedAt() <= one.session.usedAt() ? oldest : one),
    undefined,
  );
}
