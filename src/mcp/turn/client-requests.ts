import { isObject, type ResponseMessage } from '#wire';

/** Requests of servers to legacy clients: sent on an event stream, answered by a POST. */
export interface ClientRequests {
  /**
   * Waits for the client's response to the request `id` that it is about to be sent. Rejects with NoAnswer: when it
   * does not come in time, when `signal` aborts, when the session ends, when too many wait already.
   */
  register(session: string, id: string, signal: AbortSignal): Promise<ResponseMessage>;
  /**
   * Takes a response that was posted in `session`. False where nothing waits for it there: it is late, or of another
   * session.
   */
  resolve(session: string, message: ResponseMessage): boolean;
  /** The session is over: fails all that waits in it. */
  end(session: string): void;
  /** Requests that wait. */
  readonly count: number;
}

interface ClientRequestsOptions {
  /** People answer some of these. */
  readonly timeoutMs?: number;
  readonly sessionMax?: number;
  readonly waitingMax?: number;
}

/** The client was asked and did not answer. The message tells its user why. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

interface Waiting {
  readonly answer: (message: ResponseMessage) => void;
  readonly fail: (why: string) => void;
}

export function createClientRequests({
  timeoutMs = 5 * 60_000,
  sessionMax = 64,
  waitingMax = 10_000,
}: ClientRequestsOptions = {}): ClientRequests {
  const sessions = new Map<string, Map<string, Waiting>>();
  let count = 0;

  return {
    get count() {
      return count;
    },
    register(session, id, signal) {
      const waiting = sessions.get(session) ?? new Map<string, Waiting>();
      if (signal.aborted) return Promise.reject(new NoAnswer(CALL_OVER));
      if (waiting.size >= sessionMax || count >= waitingMax)
        return Promise.reject(new NoAnswer('too many requests wait for an answer'));
      if (waiting.has(id)) throw new Error(`the request ${id} waits already`);
      sessions.set(session, waiting);
      count++;
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', abort);
          waiting.delete(id);
          if (waiting.size === 0) sessions.delete(session);
          count--;
        };
        const fail = (why: string) => {
          leave();
          reject(new NoAnswer(why));
        };
        const abort = () => fail(CALL_OVER);
        const timer = setTimeout(() => fail(`the client did not answer within ${timeoutMs / 1000} s`), timeoutMs);
        signal.addEventListener('abort', abort, { once: true });
        waiting.set(id, {
          answer(message) {
            leave();
            resolve(message);
          },
          fail,
        });
      });
    },
    resolve(session, message) {
      if (typeof message.id !== 'string' || !(message.error || isObject(message.result))) return false;
      const waiting = sessions.get(session)?.get(message.id);
      waiting?.answer(message);
      return waiting !== undefined;
    },
    end(session) {
      for (const waiting of sessions.get(session)?.values() ?? []) waiting.fail('its session ended');
    },
  };
}

const CALL_OVER = 'the call ended before the client answered';
