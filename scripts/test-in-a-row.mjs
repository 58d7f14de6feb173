// Runs the everyday tests several times in a row, beside other work. A test that is red once in a while shows here.
//
//   node scripts/test-in-a-row.mjs                       ten times, beside one busy process for each processor
//   node scripts/test-in-a-row.mjs --runs 3 --load 0     three times, with nothing beside
//   node scripts/test-in-a-row.mjs --stalls              all processes of a run stand still for a second now and then
//   node scripts/test-in-a-row.mjs --runs 20 spine       only the tests whose path holds this
//
// The output of each run is in .cache/tests-in-a-row. It ends with 1 when a run was red.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, closeSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs, stripVTControlCharacters } from 'node:util';

const CHECKOUT = resolve(import.meta.dirname, '..');
const FOLDER = join(CHECKOUT, '.cache', 'tests-in-a-row');
const STALL_MS = 1_000;
/** Between two of them, on average. */
const STALL_EVERY_MS = 20_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    load: { type: 'string', default: String(availableParallelism()) },
    stalls: { type: 'boolean', default: false },
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
  const code = await runOnce(log);
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

/** A process that never rests. It ends with this one, whose pipe it watches. */
function startBusy() {
  const turn =
    'process.stdin.on("end", () => process.exit()).resume(); const work = () => { ' +
    'for (const end = Date.now() + 50; Date.now() < end;); setImmediate(work); }; work();';
  return spawn(process.execPath, ['-e', turn], { stdio: ['pipe', 'ignore', 'ignore'] });
}

/** In a process group of its own, which can be stopped as a whole. */
function runOnce(log) {
  const file = openSync(log, 'w');
  const only = positionals.length > 0 ? positionals : ['test/'];
  const child = spawn(process.execPath, [join(CHECKOUT, 'scripts', 'test.mjs'), ...only], {
    cwd: CHECKOUT,
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
      // It has ended.
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
