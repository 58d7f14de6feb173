/** Discrete events: processes that wait for a time or for one another, without taking any real time. */

/** Milliseconds to wait, or a call that resumes the process later. */
type Wait = number | ((resume: () => void) => void);
export type Process<T = void> = Generator<Wait, T, void>;

interface Event {
  readonly at: number;
  /** Events of the same time happen in the order in which they were asked for. */
  readonly order: number;
  readonly run: () => void;
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

export class Clock {
  /** Milliseconds since the begin of the simulation. */
  now = 0;
  /** A binary heap. */
  readonly #events: Event[] = [];
  #order = 0;

  start(process: Process): void {
    const { done, value } = process.next();
    if (done) return;
    const resume = () => this.start(process);
    if (typeof value === 'number') this.after(value, resume);
    else value(() => this.after(0, resume));
  }

  after(ms: number, run: () => void): void {
    const events = this.#events;
    const event = { at: this.now + ms, order: (this.#order += 1), run };
    let index = events.push(event) - 1;
    for (let parent; index > 0 && isBefore(event, events[(parent = (index - 1) >> 1)]!); index = parent)
      events[index] = events[parent]!;
    events[index] = event;
  }

  runUntil(end: number): void {
    for (let event; (event = this.#events[0]) && event.at <= end;) {
      this.#removeFirst();
      this.now = event.at;
      event.run();
    }
  }

  #removeFirst(): void {
    const events = this.#events;
    const last = events.pop()!;
    if (events.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child += 1;
      if (child >= events.length || !isBefore(events[child]!, last)) break;
      events[index] = events[child]!;
      index = child;
    }
    events[index] = last;
  }
}

/** So many processes may hold it at once, and the others wait in the order in which they came. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  *take(): Process {
    if (this.#free > 0) this.#free -= 1;
    else yield (resume) => void this.#waiting.push(resume);
  }

  giveBack(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

/** A process that works for longer lets others on its core in between. */
const SLICE_MS = 1;

interface CoresOptions {
  readonly count: number;
  /** Work takes so many times as long while another core is busy too, because they share caches and memory. */
  readonly beside: number;
  /** This part of the time of each piece of work is exponentially distributed, the rest is always the same. */
  readonly varies: number;
  readonly random: () => number;
}

/** Processors that all processes of a machine share. */
export class Cores {
  /** Milliseconds of work. */
  busyMs = 0;
  readonly #turns: Turns;
  readonly #options: CoresOptions;
  #busy = 0;

  constructor(options: CoresOptions) {
    this.#turns = new Turns(options.count);
    this.#options = options;
  }

  *work(meanMs: number): Process {
    const { beside, varies, random } = this.#options;
    const ms = meanMs * (1 - varies - varies * Math.log(1 - random()));
    for (let left = ms; left > 0; left -= SLICE_MS) {
      yield* this.#turns.take();
      const slice = Math.min(left, SLICE_MS) * (this.#busy > 0 ? beside : 1);
      this.#busy += 1;
      this.busyMs += slice;
      yield slice;
      this.#busy -= 1;
      this.#turns.giveBack();
    }
  }
}

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
