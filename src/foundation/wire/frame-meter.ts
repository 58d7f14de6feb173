import type { TokenBucket, BudgetSize } from './budgets.ts';

/**
 * Limits the bytes of a proxy, or of the process of a package, that go on to its HTTP/2 session, so that a flood of
 * small frames does not block others.
 */
export interface FrameMeter {
  /** The number of these bytes that may pass now. `bytes` continue those that passed before. */
  admit(bytes: Uint8Array): number;
  /** Why this connection has to end: it sent what no honest sender sends. Goes on after its name; null for nothing. */
  flooded(): string | null;
  /** Charges for work that does not show in the session's bytes, in units of small frames. */
  charge(frames: number): void;
  /** Milliseconds until more bytes may pass. 0: in the next turn of the event loop. */
  waitMs(): number;
}

/**
 * The small frames of a process, or of all connections from one network. A frame costs the event loop about 8 µs, so
 * this rate uses a twelfth of its time.
 */
export const FRAME_BUDGET: BudgetSize = { atOnce: 10_000, perSecond: 10_000 };
/** Frames in one turn of the event loop, about 2 ms. */
const FRAMES_PER_TURN = 256;

/** The length of the text that a client sends before its first frame (RFC 9113, 3.4). */
export const PREFACE_BYTES = 24;
/** RFC 9113, 4.1. */
const HEADER_BYTES = 9;
const DATA = 0;
/**
 * Frames that name other servers or push replies. No proxy and no package sends them, and one of 16 KiB makes thousands
 * of texts, which its session keeps.
 */
const UNFIT: ReadonlySet<number> = new Set([0x05, 0x0a, 0x0c]);
/** The frames whose payload is cheap, because the session reads it in C++: HEADERS and CONTINUATION. */
const HEADER_TYPES: ReadonlySet<number> = new Set([0x01, 0x09]);
/** So many bytes of a frame without data cost as much as a small frame. Most frames without headers have 8 bytes. */
const BYTES_PER_COST = 64;
const HEADER_BYTES_PER_COST = 1024;
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
/** Tiny frames of one connection, at once and in a second. One that sends more is disconnected. */
const TINY_AT_ONCE = 20_000;
const TINY_PER_SECOND = 1_000;

interface FrameMeterOptions {
  /** Bytes before the first frame. Default 0: those of a server. */
  readonly prefaceBytes?: number;
  readonly now?: () => number;
  /** Runs a function in the next turn of the event loop, before what is put off after it. */
  readonly nextTurn?: (run: () => void) => unknown;
}

/** The meter reads only frame headers, so large frames cost almost nothing. */
export function createFrameMeter(
  budget: TokenBucket,
  { prefaceBytes = 0, now = () => performance.now(), nextTurn = setImmediate }: FrameMeterOptions = {},
): FrameMeter {
  const header = new Uint8Array(HEADER_BYTES);
  /** `known`: bytes of `header` that have arrived. `rest`: bytes of the frame's payload that are still to come. */
  let known = 0;
  let rest = prefaceBytes;
  let passed = 0;
  let tinyLeft = TINY_AT_ONCE;
  let tinyAt = now();
  let unfit: number | null = null;
  const takeTiny = (frames: number) => {
    const present = now();
    tinyLeft = Math.min(TINY_AT_ONCE, tinyLeft + ((present - tinyAt) * TINY_PER_SECOND) / 1000) - frames;
    tinyAt = present;
  };
  return {
    admit(bytes) {
      const most = Math.min(FRAMES_PER_TURN - passed, budget.remaining());
      let small = 0;
      let tiny = 0;
      let at = 0;
      while (at < bytes.length) {
        if (rest > 0) {
          const more = Math.min(rest, bytes.length - at);
          rest -= more;
          at += more;
          continue;
        }
        if (known === 0 && small >= most) break;
        header[known++] = bytes[at++]!;
        if (known < HEADER_BYTES) continue;
        known = 0;
        rest = header[0]! * 65_536 + header[1]! * 256 + header[2]!;
        const type = header[3]!;
        if (UNFIT.has(type)) {
          unfit = type;
          break;
        }
        const isTiny = type === DATA && rest <= TINY_BYTES && !(rest === 0 && (header[4]! & END_STREAM) !== 0);
        if (isTiny) tiny += 1;
        if (isTiny) small += TINY_COST;
        else if (type !== DATA)
          small += 1 + Math.floor(rest / (HEADER_TYPES.has(type) ? HEADER_BYTES_PER_COST : BYTES_PER_COST));
        else if (rest <= SMALL_BYTES) small += 1;
      }
      budget.take(small);
      const isFirst = passed === 0;
      passed += small;
      if (isFirst && small > 0) nextTurn(() => (passed = 0));
      if (tiny > 0) takeTiny(tiny);
      return at;
    },
    flooded() {
      if (unfit !== null) return `it sent an HTTP/2 frame of type ${unfit}, for which there is no use here`;
      return tinyLeft < 0 ? `it sent more than ${TINY_AT_ONCE} frames of a few bytes` : null;
    },
    charge: (frames) => budget.take(frames),
    waitMs: () => budget.waitMs(FRAMES_PER_TURN),
  };
}

interface MeteredOptions {
  readonly meter: FrameMeter;
  /** False: no more until `more`. A reader that kept what it got would read it in one turn later. */
  readonly pass: (bytes: Buffer) => boolean;
  /** Nothing more may be read until `resume`. What still comes is kept. */
  readonly pause: () => void;
  readonly resume: () => void;
  /** Called once, with words that go on after the name of the sender. Nothing is passed after it. */
  readonly flooded: (why: string) => void;
}

/** Passes bytes on as their meter allows, in order, and keeps the rest for later turns of the event loop. */
export class MeteredBytes {
  readonly #options: MeteredOptions;
  #waiting: Buffer[] = [];
  #isFull = false;
  #timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
  #flooded = false;

  constructor(options: MeteredOptions) {
    this.#options = options;
  }

  take(bytes: Buffer): void {
    if (bytes.length > 0 && !this.#flooded) this.#waiting.push(bytes);
    if (this.#timer === null) this.#passWaiting();
  }

  /** The reader has taken all. */
  more(): void {
    this.#isFull = false;
    if (this.#timer === null && !this.#flooded) this.#passWaiting();
  }

  /** Drops all that waits: its reader has left. */
  drop(): void {
    this.#waiting = [];
    this.more();
  }

  flood(why: string): void {
    if (this.#flooded) return;
    this.#flooded = true;
    this.#waiting = [];
    this.#options.pause();
    this.#options.flooded(why);
  }

  #passWaiting(): void {
    const { meter, pass, pause, resume } = this.#options;
    this.#timer = null;
    while (this.#waiting.length > 0) {
      if (this.#isFull) return pause();
      const first = this.#waiting[0]!;
      const admitted = meter.admit(first);
      if (admitted === first.length) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(admitted);
      if (admitted > 0) this.#isFull = !pass(first.subarray(0, admitted));
      const flooded = meter.flooded();
      if (flooded !== null) return this.flood(flooded);
      if (admitted === first.length) continue;
      pause();
      const waitMs = meter.waitMs();
      const goOn = () => this.#passWaiting();
      this.#timer = waitMs > 0 ? setTimeout(goOn, waitMs) : setImmediate(goOn);
      return;
    }
    if (this.#isFull) pause();
    else resume();
  }
}
