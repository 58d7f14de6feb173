import type { RequestId } from '../../message.ts';

/** The requests of legacy clients that are on their way, so that they can be cancelled. */
export interface RunningRequests {
  start(session: string, id: RequestId): Running;
  /** False where no such request runs in the session. */
  cancel(session: string, id: RequestId, reason: string | undefined): boolean;
  readonly count: number;
}

export interface Running {
  /** Aborts when the client cancels. */
  readonly cancelled: AbortSignal;
  end(): void;
}

export function createRunningRequests(): RunningRequests {
  /** By session and id. A client that uses an id twice at once can cancel the later one. */
  const running = new Map<string, AbortController>();
  // 1 and "1" are two ids.
  const keyOf = (session: string, id: RequestId) => `${session} ${JSON.stringify(id)}`;
  return {
    get count() {
      return running.size;
    },
    start(session, id) {
      const key = keyOf(session, id);
      const controller = new AbortController();
      running.set(key, controller);
      return {
        cancelled: controller.signal,
        end() {
          if (running.get(key) === controller) running.delete(key);
        },
      };
    },
    cancel(session, id, reason) {
      const controller = running.get(keyOf(session, id));
      controller?.abort(new Error(`the client cancelled the request${reason === undefined ? '' : `: ${reason}`}`));
      return controller !== undefined;
    },
  };
}
