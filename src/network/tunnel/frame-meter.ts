/**
 * How much of what a provider's proxy sends may go on to its HTTP/2 session, so that small frames without number
 * stop nobody else.
 */
export interface FrameMeter {
  /** How many of these bytes, which are the next of the session, may go on now. */
  admit(bytes: Uint8Array): number;
  /** Counts work that is not seen in the session's bytes, in small frames. */
  charge(frames: number): void;
  /** Milliseconds until more may go on; 0 for the next turn of the event loop. */
  waitMs(): number;
}

/** The small frames of all connections from one network: a bucket that fills steadily. */
export interface FrameBudget {
  /** Frames that may still pass; below 0 after a debt. */
  left(): number;
  take(frames: number): void;
}

/** A frame costs the event loop some 8 µs: this is a twelfth of it. */
const FRAMES_PER_SECOND = 10_000;
const FRAMES_AT_ONCE = 10_000;
/** In one turn of the event loop: some 2 ms. */
const FRAMES_PER_TURN = 256;

/** RFC 9113, 4.1. */
const HEADER_BYTES = 9;
const DATA = 0;
/** Frames of data up to this are as dear as their bytes are cheap. An event of a streamed reply is larger. */
const SMALL_BYTES = 64;

export function createFrameBudget(now: () => number = () => performance.now()): FrameBudget {
  let left = FRAMES_AT_ONCE;
  let at = now();
  return {
    left() {
      const present = now();
      left = Math.min(FRAMES_AT_ONCE, left + ((present - at) * FRAMES_PER_SECOND) / 1000);
      at = present;
      return left;
    },
    take(frames) {
      left -= frames;
    },
  };
}

/** Reads frame headers and nothing else: of large frames one in many kilobytes. */
export function createFrameMeter(budget: FrameBudget): FrameMeter {
  const header = new Uint8Array(HEADER_BYTES);
  /** Bytes of `header` that are here, and of the frame that are to come. */
  let known = 0;
  let rest = 0;
  return {
    admit(bytes) {
      const most = Math.min(FRAMES_PER_TURN, budget.left());
      let small = 0;
      let at = 0;
      while (at < bytes.length) {
        if (rest > 0) {
          const passed = Math.min(rest, bytes.length - at);
          rest -= passed;
          at += passed;
          continue;
        }
        if (known === 0 && small >= most) break;
        header[known++] = bytes[at++]!;
        if (known < HEADER_BYTES) continue;
        known = 0;
        rest = header[0]! * 65_536 + header[1]! * 256 + header[2]!;
        if (header[3] !== DATA || rest <= SMALL_BYTES) small += 1;
      }
      budget.take(small);
      return at;
    },
    charge: (frames) => budget.take(frames),
    waitMs: () => Math.max(0, ((FRAMES_PER_TURN - budget.left()) * 1000) / FRAMES_PER_SECOND),
  };
}
