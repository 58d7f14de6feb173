// Makes each thread of a program stand still at random moments, as on a machine that has too much to do:
//
//   NODE_OPTIONS="--import ./scripts/shaken.mjs" npx vitest run test/mcp
//   SHAKEN_SEED=7 …    other moments than those of seed 1
//
// A thread sleeps while it stands still, so this takes no processor time. `node scripts/test-in-a-row.mjs --shaken`
// runs the tests so, with another seed each time.
import { threadId } from 'node:worker_threads';

/** The average time from one stop to the next. */
const EVERY_MS = 300;
const SHORT_MS = [20, 200];
/** One of thirty is long enough for a timeout. */
const LONG_MS = [300, 1_800];
const LONG_SHARE = 1 / 30;

// Taken before a test replaces the clock.
const { setTimeout: later } = globalThis;
const cell = new Int32Array(new SharedArrayBuffer(4));
let state = (Number(process.env.SHAKEN_SEED ?? 1) * 2_654_435_761 + threadId * 40_503) >>> 0;

/** A number from 0 to 1, excluding 1 (mulberry32). */
function random() {
  state = (state + 0x6d_2b_79_f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

function standStill() {
  const [least, most] = random() < LONG_SHARE ? LONG_MS : SHORT_MS;
  Atomics.wait(cell, 0, 0, least + random() * (most - least));
  wait();
}

function wait() {
  later(standStill, -Math.log(1 - random()) * EVERY_MS).unref();
}

// Vitest's own process and the script that starts it only report what the others find.
const [, program = ''] = process.argv;
if (!/test(?:\.mjs)?$/.test(program)) wait();
