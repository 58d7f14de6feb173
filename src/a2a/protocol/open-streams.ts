import { PlacedList, UpstreamFailure } from '#wire';

/** The open streams of running tasks, so that they can be ended cleanly before the gateway stops. */
export interface OpenStreams {
  /**
   * Adds a stream. `leave` is called when the streams must end, or at once if `end` was called before. Returns a
   * function that removes the stream.
   */
  add(leave: () => void): () => void;
  /** Ends all streams, and each stream that is added later. Their tasks go on. */
  end(): void;
  readonly ended: boolean;
}

export function createOpenStreams(): OpenStreams {
  const open = new PlacedList<{ readonly leave: () => void; place: number }>();
  const streams: OpenStreams & { ended: boolean } = {
    ended: false,
    add(leave) {
      const stream = { leave, place: -1 };
      if (streams.ended) leave();
      else open.add(stream);
      return () => open.remove(stream);
    },
    end() {
      streams.ended = true;
      for (let stream = open.items.at(-1); stream; stream = open.items.at(-1)) {
        open.remove(stream);
        stream.leave();
      }
    },
  };
  return streams;
}

/** The text that tells a client why its stream ended although the task goes on. */
export function whyEnded(error: unknown, signal: AbortSignal): string {
  const timedOut = error instanceof UpstreamFailure && error.timedOut;
  const why = signal.aborted ? messageOf(signal.reason) : timedOut ? error.message : null;
  const what = why === null ? 'The connection to the agent broke off' : `The stream was ended because ${why}`;
  return `${what}; the task continues, and tasks/get shows its state`;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'its call was stopped');
