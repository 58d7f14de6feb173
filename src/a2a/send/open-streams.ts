import { UpstreamFailure } from '#wire';

/** Streams of tasks that go on, so that their clients can be sent away in good order before the gateway stops. */
export interface OpenStreams {
  /** `leave` is called when they are to end, at once where that has been said. Returns what forgets it. */
  add(leave: () => void): () => void;
  /** Ends them, and those that are opened from now on. Their tasks go on. */
  end(): void;
  readonly ended: boolean;
}

export function createOpenStreams(): OpenStreams {
  const open = new Set<() => void>();
  let ended = false;
  return {
    add(leave) {
      if (ended) leave();
      else open.add(leave);
      return () => open.delete(leave);
    },
    end() {
      ended = true;
      for (const leave of open) leave();
      open.clear();
    },
    get ended() {
      return ended;
    },
  };
}

/** Why a stream ended whose task goes on, for its client. */
export function whyEnded(error: unknown, signal: AbortSignal): string {
  const timedOut = error instanceof UpstreamFailure && error.timedOut;
  const why = signal.aborted ? messageOf(signal.reason) : timedOut ? error.message : null;
  const what = why === null ? 'The connection to the agent broke off' : `The stream was ended because ${why}`;
  return `${what}; the task goes on, and tasks/get shows where it stands`;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'its call was stopped');
