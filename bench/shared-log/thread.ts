import { hash } from 'node:crypto';
import { constants, openSync, write } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';

export interface Setup {
  readonly memory: SharedArrayBuffer;
  /** A file of LOG_BYTES. */
  readonly path: string;
  readonly isShared: boolean;
}

export interface Order {
  /** null: as many as 32 at once get done. */
  readonly perSecond: number | null;
  readonly ms: number;
}

export interface Driven {
  readonly pairs: number;
  /** Milliseconds of settlements. */
  readonly p50: number;
  readonly p99: number;
}

interface Ledger {
  lock(): void;
  /** Resolves when the record is on the disk. */
  settle(): Promise<void>;
}

/** The file is written again from its beginning when it is full. */
export const LOG_BYTES = 4 * 1024 * 1024;
/** In the shared memory: 32-bit integers, then the rows, then what is not on the disk yet. */
const ROWS_AT = 64;
const UNWRITTEN_AT = 128;
export const MEMORY_BYTES = UNWRITTEN_AT + LOG_BYTES;
const MUTEX = 0;
/** The position behind the last record, and behind the last one on the disk. */
const END = 1;
const FLUSHED = 2;
/** 1 while a thread writes. */
const WRITING = 3;
/** Counts the writes that have ended. */
const WRITES = 4;

const AT_ONCE = 32;
const LOCKED = 900n;
const EARNED = 342n;
const FEE = 3n;

/** The length of the entries of a call in the ledger's log. */
const RECORD = `${JSON.stringify(['settle', 'r'.repeat(838)])}\n`;

const rowsIn = (memory: SharedArrayBuffer) => new BigInt64Array(memory, ROWS_AT, 4);
/** The sum of the rows: available, locked, earnings, fees. They begin with 0. */
export const moneyIn = (memory: SharedArrayBuffer): bigint => rowsIn(memory).reduce((sum, row) => sum + row, 0n);

function lockIn(rows: BigInt64Array | bigint[]): void {
  rows[0]! -= LOCKED;
  rows[1]! += LOCKED;
}

function settleIn(rows: BigInt64Array | bigint[]): void {
  rows[0]! += LOCKED - EARNED - FEE;
  rows[1]! -= LOCKED;
  rows[2]! += EARNED;
  rows[3]! += FEE;
}

/** Writes bytes where the log has them; `done` is called when they are on the disk. */
function append(file: number, bytes: Buffer, position: number, done: () => void): void {
  hash('sha256', bytes);
  write(file, bytes, 0, bytes.byteLength, position % LOG_BYTES, (error) => {
    if (error) throw error;
    done();
  });
}

function ownLedger(file: number): Ledger {
  const rows = [0n, 0n, 0n, 0n];
  let draft = '';
  let end = 0;
  let isWriting = false;
  let waiting: (() => void)[] = [];
  const flush = () => {
    if (isWriting || waiting.length === 0) return;
    const [bytes, answered, position] = [Buffer.from(draft, 'latin1'), waiting, end];
    end += bytes.byteLength;
    draft = '';
    waiting = [];
    isWriting = true;
    append(file, bytes, position, () => {
      isWriting = false;
      for (const resolve of answered) resolve();
      if (waiting.length > 0) setImmediate(flush);
    });
  };
  return {
    lock: () => lockIn(rows),
    settle: () =>
      new Promise((resolve) => {
        settleIn(rows);
        draft += RECORD;
        if (waiting.push(resolve) === 1) setImmediate(flush);
      }),
  };
}

/**
 * Whoever waits for a record that is not on the disk writes all records that are not, unless another thread is writing.
 * Then it waits for the end of that write.
 */
function sharedLedger(memory: SharedArrayBuffer, file: number): Ledger {
  const words = new Int32Array(memory, 0, WRITES + 1);
  const rows = rowsIn(memory);
  const unwritten = Buffer.from(memory, UNWRITTEN_AT);
  const waiting: { readonly end: number; readonly resolve: () => void }[] = [];
  let isWatching = false;
  const alone = <T>(run: () => T): T => {
    while (Atomics.compareExchange(words, MUTEX, 0, 1) !== 0) Atomics.wait(words, MUTEX, 1, 1);
    try {
      return run();
    } finally {
      Atomics.store(words, MUTEX, 0);
      Atomics.notify(words, MUTEX, 1);
    }
  };
  const answer = () => {
    const flushed = Atomics.load(words, FLUSHED);
    const left = waiting.findIndex(({ end }) => end > flushed);
    for (const { resolve } of waiting.splice(0, left === -1 ? waiting.length : left)) resolve();
    if (waiting.length > 0) setImmediate(flush);
  };
  const watch = () => {
    if (isWatching) return;
    isWatching = true;
    const writes = Atomics.load(words, WRITES);
    const ended = () => {
      isWatching = false;
      answer();
    };
    if (Atomics.load(words, WRITING) === 0) return void setImmediate(ended);
    const change = Atomics.waitAsync(words, WRITES, writes);
    if (change.async) void change.value.then(ended);
    else setImmediate(ended);
  };
  const flush = () => {
    if (waiting.length === 0) return;
    if (Atomics.compareExchange(words, WRITING, 0, 1) !== 0) return watch();
    const from = Atomics.load(words, FLUSHED);
    const at = from % LOG_BYTES;
    const length = Math.min(Atomics.load(words, END) - from, LOG_BYTES - at);
    const written = () => {
      Atomics.add(words, FLUSHED, length);
      Atomics.store(words, WRITING, 0);
      Atomics.add(words, WRITES, 1);
      Atomics.notify(words, WRITES);
      answer();
    };
    if (length === 0) return written();
    append(file, Buffer.from(unwritten.subarray(at, at + length)), from, written);
  };
  return {
    lock: () => alone(() => lockIn(rows)),
    settle: () =>
      new Promise((resolve) => {
        const end = alone(() => {
          settleIn(rows);
          const begin = words[END]!;
          const fits = unwritten.write(RECORD, begin % LOG_BYTES, 'latin1');
          if (fits < RECORD.length) unwritten.write(RECORD.slice(fits), 0, 'latin1');
          return (words[END] = begin + RECORD.length);
        });
        if (waiting.push({ end, resolve }) === 1) setImmediate(flush);
      }),
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function drive(ledger: Ledger, { perSecond, ms }: Order): Promise<Driven> {
  const times: number[] = [];
  const pair = async () => {
    ledger.lock();
    await turn();
    const begun = performance.now();
    await ledger.settle();
    times.push(performance.now() - begun);
  };
  const begun = performance.now();
  if (perSecond === null) {
    const caller = async () => {
      while (performance.now() - begun < ms) await pair();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, caller));
  } else {
    for (let at = 0; at < ms; at += 1_000 / perSecond) {
      const early = begun + at - performance.now();
      if (early > 0) await pause(early);
      await pair();
    }
  }
  const sorted = times.toSorted((a, b) => a - b);
  return {
    pairs: times.length,
    p50: sorted[sorted.length >> 1]!,
    p99: sorted[Math.floor(sorted.length * 0.99)]!,
  };
}

if (!isMainThread) {
  const { memory, path, isShared } = workerData as Setup;
  const file = openSync(path, constants.O_RDWR | constants.O_DSYNC);
  const ledger = isShared ? sharedLedger(memory, file) : ownLedger(file);
  parentPort!.on(
    'message',
    (order: Order) => void drive(ledger, order).then((driven) => parentPort!.postMessage(driven)),
  );
}
