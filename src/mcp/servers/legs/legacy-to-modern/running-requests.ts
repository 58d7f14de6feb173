import type { RequestId } from '#wire';

/** The requests of legacy clients that are on their way, so that they can be cancelled. */
export interface RunningRequests {
  /** `graceMs`: how long what was cancelled may still be answered, and is paid if it is. */
  start(session: string, id: RequestId, graceMs: number): Running;
  /** False where no such request runs in the session. */
  cancel(session: string, id: RequestId, reason: string | undefined): boolean;
  readonly count: number;
}

export interface Running {
  /** Aborts when the client cancels: it answers nothing more. */
  readonly unwanted: AbortSignal;
  /** Aborts when the time is over that a cancelled request has. */
  readonly cancelled: AbortSignal;
  end(): void;
}

export function createRunningRequests(): RunningRequests {
  /** By session and id. A client that uses an id twice at once can cancel the later one. */
  const running = new Map<string, { readonly cancel: (why: Error) => void }>();
  // 1 and "1" are two ids.
  const keyOf = (session: string, id: RequestId) => `${session} ${JSON.stringify(id)}`;
  return {
    get count() {
      return running.size;
    },
    start(session, id, graceMs) {
      const key = keyOf(session, id);
      const unwanted = new AbortController();
      const cancelled = new AbortController();
      let grace: NodeJS.Timeout | undefined;
      const request = {
        cancel(why: Error) {
          unwanted.abort(why);
          if (graceMs === 0) cancelled.abort(why);
          else grace ??= setTimeout(() => cancelled.abort(why), graceMs);
        },
      };
      running.set(key, request);
      return {
        unwanted: unwanted.signal,
        cancelled: cancelled.signal,
        end() {
          clearTimeout(grace);
          if (running.get(key) === request) running.delete(key);
        },
      };
    },
    cancel(session, id, reason) {
      const request = running.get(keyOf(session, id));
      request?.cancel(new Error(`the client cancelled the request${reason === undefined ? '' : `: ${reason}`}`));
      return request !== undefined;
    },
  };
}
