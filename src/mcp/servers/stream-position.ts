import type { Marker, Received } from '#gateway';

/** How far an event stream was read, and when to ask for the rest. */
interface StreamPosition {
  /** Id of the last event; null if the stream cannot be resumed. */
  readonly lastEventId: string | null;
  /** The pause before the stream is asked for again, in milliseconds. It is the server's `retry`, within bounds. */
  readonly retryMs: number;
  /** Notes the id and the `retry` of an event. */
  read(event: Received | Marker): void;
}

const RETRY_MS = 1_000;

/** `retryMsMin`: a server with a shorter `retry` would keep the gateway busy for nothing. */
export function createStreamPosition(retryMsMin: number, retryMsMax: number): StreamPosition {
  const position: StreamPosition & { lastEventId: string | null; retryMs: number } = {
    lastEventId: null,
    retryMs: RETRY_MS,
    read(event) {
      if (event.eventId !== null) position.lastEventId = resumableId(event.eventId);
      if (event.message === null && event.retryMs !== null)
        position.retryMs = Math.min(Math.max(event.retryMs, retryMsMin), retryMsMax);
    },
  };
  return position;
}

/** The id if a Last-Event-ID header can carry it; else null. */
export const resumableId = (eventId: string): string | null => (/^[ -~]{1,1024}$/.test(eventId) ? eventId : null);
