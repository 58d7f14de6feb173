/**
 * How long a call waits for the stream of its session, in milliseconds. The wait is bounded, because some servers send
 * the response headers of a stream only with its first event.
 */
export const STREAM_OPEN_MS = 250;

/**
 * Streams that clients have just opened and whose servers have not answered yet. Many servers send their questions to
 * the client on this stream, and lose them if it is not open. So a later call of the client must not reach the server
 * before the stream does.
 */
interface OpeningStreams {
  /** Notes that the stream of a session is on its way to the server. Call the result once the server has answered. */
  open(session: string): () => void;
  /**
   * Resolves when the server has answered the stream of a session, or after STREAM_OPEN_MS. Null if no stream is on its
   * way.
   */
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
