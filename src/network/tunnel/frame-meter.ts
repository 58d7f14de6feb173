/**
 * Limits the bytes of a proxy that go on to its HTTP/2 session, so that a flood of small frames does not block others.
 */
export interface FrameMeter {
  /** The number of these bytes that may pass now. `bytes` continue those that passed before. */
  admit(bytes: Uint8Array): number;
  /** Whether this connection sent so many tiny frames that no honest proxy sends as many. */
  flooded(): boolean;
  /** Charges for work that does not show in the session's bytes, in units of small frames. */
  charge(frames: number): void;
  /** Milliseconds until more bytes may pass. 0: in the next turn of the event loop. */
  waitMs(): number;
}

/** A token bucket for the small frames of all connections from one network. */
export interface FrameBudget {
  /** Frames that may still pass. May be negative. */
  left(): number;
  take(frames: number): void;
}

/** A frame costs the event loop about 8 µs, so this rate uses a twelfth of its time. */
const FRAMES_PER_SECOND = 10_000;
const FRAMES_AT_ONCE = 10_000;
/** Frames in one turn of the event loop, about 2 ms. */
const FRAMES_PER_TURN = 256;

/** RFC 9113, 4.1. */
const HEADER_BYTES = 9;
const DATA = 0;
const END_STREAM = 1;
/**
 * DATA frames up to this size count as small, because their cost is that of the frame. An event of a streamed reply is
 * larger.
 */
const SMALL_BYTES = 64;
/**
 * DATA frames up to this size are tiny, apart from an empty last one. Each costs as much as four small frames, because
 * its reader has work as well: for a reply in such pieces about 40 µs.
 */
const TINY_BYTES = 8;
const TINY_COST = 4;
/** Tiny frames of one connection, at once and in a second. A proxy that sends more is disconnected. */
export const TINY_AT_ONCE = 20_000;
const TINY_PER_SECOND = 1_000;

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

/** The meter reads only frame headers, so large frames cost almost nothing. */
export function createFrameMeter(budget: FrameBudget, now: () => number = () => performance.now()): FrameMeter {
  const header = new Uint8Array(HEADER_BYTES);
  /** `known`: bytes of `header` that have arrived. `rest`: bytes of the frame's payload that are still to come. */
  let known = 0;
  let rest = 0;
  let tinyLeft = TINY_AT_ONCE;
  let tinyAt = now();
  const takeTiny = (frames: number) => {
    const present = now();
    tinyLeft = Math.min(TINY_AT_ONCE, tinyLeft + ((present - tinyAt) * TINY_PER_SECOND) / 1000) - frames;
    tinyAt = present;
  };
  return {
    admit(bytes) {
      const most = Math.min(FRAMES_PER_TURN, budget.left());
      let small = 0;
      let tiny = 0;
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
        const isTiny = header[3] === DATA && rest <= TINY_BYTES && !(rest === 0 && (header[4]! & END_STREAM) !== 0);
        if (isTiny) tiny += 1;
        if (isTiny) small += TINY_COST;
        else if (header[3] !== DATA || rest <= SMALL_BYTES) small += 1;
      }
      budget.take(small);
      if (tiny > 0) takeTiny(tiny);
      return at;
    },
    flooded: () => tinyLeft < 0,
    charge: (frames) => budget.take(frames),
    waitMs: () => Math.max(0, ((FRAMES_PER_TURN - budget.left()) * 1000) / FRAMES_PER_SECOND),
  };
}
