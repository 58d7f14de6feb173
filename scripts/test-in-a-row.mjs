// Runs the tests of `npm test` and `npm run test:full` several times in a row on a busy machine, to find tests that
// fail only sometimes.
//
//   node scripts/test-in-a-row.mjs                       ten times, with one busy process for each processor
//   node scripts/test-in-a-row.mjs --runs 3 --load 0     three times, without other load
//   node scripts/test-in-a-row.mjs --stalls              now and then, all processes of a run are stopped for a second
//   node scripts/test-in-a-row.mjs --shaken              each thread of the tests stands still at moments of its own
//   node scripts/test-in-a-row.mjs --runs 20 spine       only tests whose path contains this
//
// The output of each run is in .cache/tests-in-a-row. Exits with 1 if a run failed.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, closeSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';

const CHECKOUT = resolve(import.meta.dirname, '..');
const FOLDER = join(CHECKOUT, '.cache', 'tests-in-a-row');
const STALL_MS = 1_000;
const SHAKEN = `${process.env.NODE_OPTIONS ?? ''} --import ${pathToFileURL(join(CHECKOUT, 'scripts', 'shaken.mjs'))}`;
/** Average time between two stalls. */
const STALL_EVERY_MS = 20_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    load: { type: 'string', default: String(availableParallelism()) },
    stalls: { type: 'boolean', default: false },
    shaken: { type: 'boolean', default: false },
  },
});
const runs = countOf('runs', 1);
const load = countOf('load', 0);
mkdirSync(FOLDER, { recursive: true });

const busy = Array.from({ length: load }, startBusy);
let red = 0;
let isInterrupted = false;
for (let n = 1; n <= runs && !isInterrupted; n += 1) {
  const log = join(FOLDER, `${n}.log`);
  const begun = performance.now();
  const code = await runOnce(log, n);
  const seconds = Math.round((performance.now() - begun) / 1000);
  if (code !== 0) red += 1;
  const said = stripVTControlCharacters(readFileSync(log, 'utf8'));
  const counts = said.match(/^\d+ passed.*$/gm)?.at(-1) ?? `ended with ${code}, see ${relative(CHECKOUT, log)}`;
  console.log(`${String(n).padStart(3)} of ${runs}  ${code === 0 ? 'ok ' : 'RED'}  ${seconds} s  ${counts}`);
  for (const [line] of said.matchAll(/^ {2}test\/.*$/gm)) console.log(`       ${line.trim()}`);
}
for (const each of busy) each.kill();
if (!isInterrupted) console.log(red === 0 ? `${runs} in a row are green` : `${red} of ${runs} were red`);
process.exitCode = Number(red > 0 || isInterrupted);

function countOf(name, least) {
  const count = Number(values[name]);
  if (Number.isSafeInteger(count) && count >= least) return count;
  console.error(`--${name} is ${values[name]}: give a whole number, at least ${least}`);
  process.exit(1);
}

/** Starts a process that uses a whole processor. It ends with this process, because it watches its stdin pipe. */
function startBusy() {
  const turn =
    'process.stdin.on("end", () => process.exit()).resume(); const work = () => { ' +
    'for (const end = Date.now() + 50; Date.now() < end;); setImmediate(work); }; work();';
  return spawn(process.execPath, ['-e', turn], { stdio: ['pipe', 'ignore', 'ignore'] });
}

/** Runs the tests in their own process group, which can be stopped as a whole. `n` is the seed of `--shaken`. */
function runOnce(log, n) {
  const file = openSync(log, 'w');
  const only = positionals.length > 0 ? positionals : ['test/'];
  const child = spawn(process.execPath, [join(CHECKOUT, 'scripts', 'test.mjs'), ...only], {
    cwd: CHECKOUT,
    env: values.shaken ? { ...process.env, NODE_OPTIONS: SHAKEN, SHAKEN_SEED: String(n) } : process.env,
    detached: true,
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  const { pid } = child;
  const signal = (name) => {
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch (error) {
      // The group has already ended.
      if (error.code !== 'ESRCH') throw error;
    }
  };
  const end = () => {
    isInterrupted = true;
    signal('SIGINT');
  };
  process.once('SIGINT', end);
  let timer = null;
  const stall = () => {
    signal('SIGSTOP');
    timer = setTimeout(() => {
      signal('SIGCONT');
      wait();
    }, STALL_MS);
  };
  const wait = () => (timer = setTimeout(stall, Math.random() * 2 * STALL_EVERY_MS));
  if (values.stalls) wait();
  return new Promise((done) => {
    child.on('error', (error) => {
      console.error(`The tests do not start: ${error.message}`);
      done(1);
    });
    child.on('exit', (code) => {
      clearTimeout(timer);
      process.off('SIGINT', end);
      done(code ?? 1);
    });
  });
}
