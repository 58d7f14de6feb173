/** A stream that is kept alive through silence. */
export interface Silent {
  /** Ticks since its last byte; whoever writes sets it to 0. */
  quietTicks: number;
  /** Writes a comment, which clients skip. */
  beat(): void;
}

export interface KeepAlive {
  watch(stream: Silent): void;
  forget(stream: Silent): void;
}

const TICK_MS = 1000;

/**
 * One timer for all open streams: after `silenceMs` without a byte a stream gets a comment, so that proxies and clients
 * do not take a thinking model for a dead connection. Writing costs a stream one assignment, no timer.
 */
export function createKeepAlive(silenceMs: number, tickMs: number = Math.min(TICK_MS, silenceMs)): KeepAlive {
  const streams = new Set<Silent>();
  const ticksMax = Math.ceil(silenceMs / tickMs);
  let timer: NodeJS.Timeout | null = null;

  function tick(): void {
    for (const stream of streams) {
      if (++stream.quietTicks < ticksMax) continue;
      stream.quietTicks = 0;
      stream.beat();
    }
  }

  return {
    watch(stream) {
      streams.add(stream);
      timer ??= setInterval(tick, tickMs).unref();
    },
    forget(stream) {
      streams.delete(stream);
      if (streams.size > 0 || timer === null) return;
      clearInterval(timer);
      timer = null;
    },
  };
}
