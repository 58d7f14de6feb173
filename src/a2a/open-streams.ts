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
