/** A stream that is kept alive through silence. Made by createSilent. */
export interface Silent {
  /** Ticks since its last byte. Its writer sets it to 0. */
  quietTicks: number;
  /** Writes a comment, which clients skip. */
  beat(): void;
  /** The keep-alive's own: the stream's place in its list, -1 outside. */
  place: number;
}

export interface KeepAlive {
  watch(stream: Silent): void;
  /** The next beat comes within so many milliseconds, where nothing is written before. */
  within(stream: Silent, ms: number): void;
  forget(stream: Silent): void;
}

const TICK_MS = 1000;

export const createSilent = (beat: () => void): Silent => ({ quietTicks: 0, beat, place: -1 });

/**
 * One timer for all open streams: after `silenceMs` without a byte a stream gets a comment, so that proxies and clients
 * do not take a thinking model for a dead connection. Writing costs a stream one assignment, no timer.
 */
export function createKeepAlive(silenceMs: number, tickMs: number = Math.min(TICK_MS, silenceMs)): KeepAlive {
  // No Set: each time that one grows, it leaves a dead table in the old heap that keeps all streams of that moment,
  // with their whole calls, until the next full collection. With a reply for each call that was every call: 16 KB
  // to copy for each.
  const streams: Silent[] = [];
  const ticksMax = Math.ceil(silenceMs / tickMs);
  let timer: NodeJS.Timeout | null = null;

  function tick(): void {
    // Not at the end of each stream: calls that come one by one would each make a timer.
    if (streams.length === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    // Backwards: one that is forgotten by its beat is replaced by one that had its turn.
    for (let at = streams.length - 1; at >= 0; at--) {
      const stream = streams[at];
      if (!stream || ++stream.quietTicks < ticksMax) continue;
      stream.quietTicks = 0;
      stream.beat();
    }
  }

  return {
    watch(stream) {
      if (stream.place !== -1) return;
      stream.place = streams.push(stream) - 1;
      timer ??= setInterval(tick, tickMs).unref();
    },
    within(stream, ms) {
      stream.quietTicks = Math.max(stream.quietTicks, ticksMax - Math.max(1, Math.floor(ms / tickMs)));
    },
    forget(stream) {
      const { place } = stream;
      if (place === -1) return;
      stream.place = -1;
      const last = streams.pop()!;
      if (last === stream) return;
      streams[place] = last;
      last.place = place;
    },
  };
}
