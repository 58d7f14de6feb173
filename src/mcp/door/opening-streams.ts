/**
 * How long a call waits for the stream of its session, in milliseconds. Some servers send the head of a stream only
 * with its first event.
 */
export const STREAM_OPEN_MS = 250;

/**
 * Streams that clients have just opened, until their servers have answered. Many servers send their questions to the
 * client on this stream, and lose them where it is not open. So a call that the client made after it must not overtake
 * it on the way to the server.
 */
interface OpeningStreams {
  /** A stream of the session is on its way to the server. Call the result once the server has answered. */
  open(session: string): () => void;
  /** Resolves when the stream of a session was answered, or after STREAM_OPEN_MS; null where none is on its way. */
  answered(session: string): Promise<void> | null;
}

export function createOpeningStreams(): OpeningStreams {
  const opening = new Map<string, Promise<void>>();
  return {
    open(session) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(done, STREAM_OPEN_MS).unref();
      function done(): void {
        clearTimeout(timer);
        if (opening.get(session) === promise) opening.delete(session);
        resolve();
      }
      opening.set(session, promise);
      return done;
    },
    answered: (session) => opening.get(session) ?? null,
  };
}
