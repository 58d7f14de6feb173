import type { Marker, Received } from '#gateway';

/** How far an event stream was read, and when to ask for the rest of it. */
interface StreamPosition {
  /** Id of the last event; null where the stream cannot be resumed. */
  readonly lastEventId: string | null;
  /** How long to wait before the stream is asked for again, in milliseconds: the server's `retry` within bounds. */
  readonly retryMs: number;
  /** Takes note of an event. */
  read(event: Received | Marker): void;
}

const RETRY_MS = 1_000;

/** `retryMsMin`: a server that asks for less would keep the gateway busy with nothing. */
export function createStreamPosition(retryMsMin: number, retryMsMax: number): StreamPosition {
  let lastEventId: string | null = null;
  let retryMs = RETRY_MS;
  return {
    get lastEventId() {
      return lastEventId;
    },
    get retryMs() {
      return retryMs;
    },
    read(event) {
      if (event.eventId !== null) lastEventId = resumableId(event.eventId);
      if (event.message === null && event.retryMs !== null)
        retryMs = Math.min(Math.max(event.retryMs, retryMsMin), retryMsMax);
    },
  };
}

/** The id where a Last-Event-ID header can carry it, else null. */
export const resumableId = (eventId: string): string | null => (/^[ -~]{1,1024}$/.test(eventId) ? eventId : null);
