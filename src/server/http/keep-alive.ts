import { type Placed, PlacedList } from '#wire';

/** A stream that gets keep-alive comments while it is silent. */
export interface Silent extends Placed {
  /** Ticks since the last byte. The writer of the stream sets it to 0. */
  quietTicks: number;
  /** Writes a comment, which clients ignore. */
  beat(): void;
}

export interface KeepAlive {
  watch(stream: Silent): void;
  /** Makes the next beat come after a third of the usual silence, if nothing is written before. */
  soon(stream: Silent): void;
  forget(stream: Silent): void;
}

const TICK_MS = 1000;

export const createSilent = (beat: () => void): Silent => ({ quietTicks: 0, beat, place: -1 });

/**
 * One timer for all open streams. After `silenceMs` without a byte, a stream gets a comment, so that proxies and
 * clients do not take a thinking model for a dead connection. A write costs one assignment and no timer.
 */
export function createKeepAlive(silenceMs: number, tickMs: number = Math.min(TICK_MS, silenceMs)): KeepAlive {
  const streams = new PlacedList<Silent>();
  const ticksMax = Math.ceil(silenceMs / tickMs);
  let timer: NodeJS.Timeout | null = null;

  function tick(): void {
    // The timer is stopped here and not at the end of the last stream, because sequential calls would each start a
    // timer.
    const { items } = streams;
    if (items.length === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    // Iterates backwards: if a beat removes its stream, the stream that takes its index has been handled already.
    for (let at = items.length - 1; at >= 0; at--) {
      const stream = items[at];
      if (!stream || ++stream.quietTicks < ticksMax) continue;
      stream.quietTicks = 0;
      stream.beat();
    }
  }

  return {
    watch(stream) {
      streams.add(stream);
      timer ??= setInterval(tick, tickMs).unref();
    },
    soon(stream) {
      stream.quietTicks = Math.max(stream.quietTicks, ticksMax - Math.max(1, Math.floor(ticksMax / 3)));
    },
    forget: (stream) => streams.remove(stream),
  };
}
