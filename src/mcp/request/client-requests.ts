import { isObject } from '#wire';
import type { ResponseMessage } from '#json-rpc';

/** Requests that servers make to legacy clients. They go out on an event stream, and the client answers by a POST. */
export interface ClientRequests {
  /**
   * Waits for the client's response to the request `id`. Call this before the request is sent. Rejects with NoAnswer if
   * the client does not answer in time, `signal` aborts, the session ends, or too many requests wait already.
   */
  register(session: string, id: string, signal: AbortSignal): Promise<ResponseMessage>;
  /**
   * Takes a response that was posted in `session`. Returns false if no request waits for it there: the response is
   * late, or belongs to another session.
   */
  resolve(session: string, message: ResponseMessage): boolean;
  /** Ends a session: every request that waits in it fails with NoAnswer. */
  end(session: string): void;
  readonly count: number;
}

interface ClientRequestsOptions {
  /** The default is long, because people answer some of these requests. */
  readonly timeoutMs?: number;
  readonly sessionMax?: number;
  readonly waitingMax?: number;
}

/** The client was asked but did not answer. The message says why, for the client's user. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

interface WaitingRequest {
  readonly answer: (message: ResponseMessage) => void;
  readonly fail: (why: string) => void;
}

export function createClientRequests({
  timeoutMs = 5 * 60_000,
  sessionMax = 64,
  waitingMax = 10_000,
}: ClientRequestsOptions = {}): ClientRequests {
  const sessions = new Map<string, Map<string, WaitingRequest>>();

  const requests: ClientRequests & { count: number } = {
    count: 0,
    register(session, id, signal) {
      const waiting = sessions.get(session) ?? new Map<string, WaitingRequest>();
      if (signal.aborted) return Promise.reject(new NoAnswer(CALL_OVER));
      if (waiting.size >= sessionMax || requests.count >= waitingMax)
        return Promise.reject(new NoAnswer('too many requests wait for an answer'));
      if (waiting.has(id)) throw new Error(`the request ${id} already waits for an answer`);
      sessions.set(session, waiting);
      requests.count++;
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', abort);
          waiting.delete(id);
          if (waiting.size === 0) sessions.delete(session);
          requests.count--;
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
  return requests;
}

const CALL_OVER = 'the call ended before the client answered';
