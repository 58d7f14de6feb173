// Runs the tests, with types, lint and format beside them. Node 20 and newer can run this script. It starts the tools
// with the Node that npm installed.
//
//   node scripts/test.mjs                 what every change must hold: no servers, no programs, no browser
//   node scripts/test.mjs --changed       of these, what imports a file that differs from the last commit
//   node scripts/test.mjs --full          the rest: PostgreSQL, Redis, chains, processes, browsers
//   node scripts/test.mjs --deep          all tests with many more iterations, one part after the other
//   node scripts/test.mjs --deep --list   the names of the parts
//   node scripts/test.mjs --deep --part soak --part money   only these parts, without the checks
//   node scripts/test.mjs --deep --part bare --as user --only test   of part bare, only this account and this command
//   node scripts/test.mjs --check         only types, lint and format
//   node scripts/test.mjs billing/money   only tests whose path contains this, of every tier, without the checks
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join, relative, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { findWorkingNode } from '../bin/working-node.mjs';
import { ACCOUNTS, COMMANDS, runBareMachines, whyNoBareMachine } from './bare-machine.mjs';
import { BARE, deepParts, PART_NAMES } from './deep-parts.mjs';
import { installTestPackages } from './test-packages.mjs';

const CHECKOUT = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');
const BIN = join(CHECKOUT, 'node_modules', '.bin');
const SLOWEST_TOLD = 10;
const FAILURES_TOLD = 40;
/** Files that may fail beside others, and pass alone. If more fail, something is broken. */
const AGAIN_MAX = 4;
const REPORT = join(CHECKOUT, '.cache', `test-report-${process.pid}.json`);

const args = process.argv.slice(2);
const deep = args.includes('--deep');
const full = args.includes('--full');
const changedOnly = args.includes('--changed');
const checkOnly = args.includes('--check');
const wanted = readParts();
const accounts = readChoice('--as', ACCOUNTS);
const commands = readChoice('--only', COMMANDS);
const filters = args.filter(
  (argument, at) => !argument.startsWith('--') && !['--part', '--as', '--only'].includes(args[at - 1]),
);
const whole = filters.length === 0 && wanted.length === 0;

const node = findNode();
const env = {
  ...process.env,
  PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`,
  ...(deep ? { TOLLGATE_DEEP: '1' } : {}),
  // Which files run: test-tiers.ts.
  TOLLGATE_TESTS: deep ? 'deep' : filters.length > 0 ? 'both' : full ? 'full' : 'everyday',
};
const steps = [
  { name: 'types', tool: 'tsc', args: ['--noEmit'] },
  { name: 'types of the web pages', tool: 'tsc', args: ['--noEmit', '-p', 'web'] },
  { name: 'lint', tool: 'oxlint', args: ['--type-aware', '--quiet'] },
  { name: 'format', tool: 'oxfmt', args: ['--check'] },
];
const results = [];
let interrupted = false;

if (whole) requireTools();
if (!checkOnly) requireCache();
requireTestPackages();
console.log(
  `tollgate ${checkOnly ? 'checks' : 'tests'}${deep ? ' (deep)' : full ? ' (full)' : ''}, Node ${node.version}`,
);
// The full run comes after the everyday one, which has made the checks.
const [, tests] = await Promise.all([
  whole && !full ? check() : null,
  checkOnly ? null : deep && filters.length === 0 ? runParts() : runTests(filters),
]);
process.exitCode = tests === null ? Number(interrupted || results.some(({ ok }) => !ok)) : summarise();

/** Reads the names after `--part`. With `--list`, prints all names and exits. */
function readParts() {
  if (args.includes('--list')) {
    for (const { name, files } of deepParts(CHECKOUT)) console.log(`${name.padEnd(10)} ${files.length} files`);
    console.log(`${BARE.padEnd(10)} the commands of the README, on a machine that is built`);
    process.exit(0);
  }
  const names = args.filter((_, at) => args[at - 1] === '--part');
  const unknown = names.filter((name) => !PART_NAMES.includes(name));
  const wrong = args.at(-1) === '--part' ? '--part needs a name' : unknown.map((name) => `No part ${name}`).join('. ');
  if (wrong !== '' || (names.length > 0 && !deep)) {
    console.error(`${wrong || '--part is for the deep run: give --deep as well'}. Parts: ${PART_NAMES.join(', ')}`);
    process.exit(1);
  }
  return names;
}

/** What part `bare` runs: all of `choices`, or the one after `flag`. */
function readChoice(flag, choices) {
  if (!args.includes(flag)) return choices;
  const choice = args[args.indexOf(flag) + 1];
  if (choices.includes(choice) && wanted.includes(BARE)) return [choice];
  console.error(`${flag} is for "--deep --part ${BARE}", and is one of: ${choices.join(', ')}`);
  process.exit(1);
}

/**
 * Runs each part as a separate process, so that a part which fails or crashes doesn't affect the results of the others.
 */
async function runParts() {
  const parts = [...deepParts(CHECKOUT), { name: BARE, files: [] }].filter(
    ({ name }) => wanted.length === 0 || wanted.includes(name),
  );
  const begun = performance.now();
  const runs = [];
  for (const [index, { name, files }] of parts.entries()) {
    const place = `part ${index + 1} of ${parts.length}: ${name}`;
    console.log(`\n== ${place}, ${name === BARE ? 'no' : files.length} files, ${minutesSince(begun)} so far`);
    const tests = await (name === BARE ? runBare() : runTests(files));
    console.log(`== ${place} ${tests.code === 0 ? 'ok' : 'FAILED'} in ${tests.seconds.toFixed(1)} s`);
    runs.push({ name, ...tests });
    if (interrupted) break;
  }
  const sum = (pick) => runs.reduce((total, each) => total + pick(each), 0);
  return {
    parts: runs,
    code: Math.max(...runs.map(({ code }) => code)),
    seconds: sum(({ seconds }) => seconds),
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    known: sum(({ known }) => known),
    skipped: sum(({ skipped }) => skipped),
    failures: runs.flatMap(({ failures }) => failures),
    slowest: runs.flatMap(({ slowest }) => slowest),
    complete: runs.every(({ complete }) => complete),
  };
}

/** Where no machine can be built, the part fails if it was asked for by name, and is skipped else. */
async function runBare() {
  const started = performance.now();
  const none = { passed: 0, failed: 0, known: 0, skipped: 0, failures: [], slowest: [], complete: true, code: 0 };
  const whyNot = whyNoBareMachine();
  if (whyNot !== null) {
    console.log(whyNot);
    return wanted.includes(BARE)
      ? { ...none, failed: 1, failures: [whyNot], code: 1, seconds: 0 }
      : { ...none, skipped: accounts.length * commands.length, seconds: 0 };
  }
  const ending = new AbortController();
  const stop = () => {
    interrupted = true;
    ending.abort();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const seconds = () => (performance.now() - started) / 1000;
  try {
    const results = await runBareMachines({ accounts, commands, say: console.log, signal: ending.signal });
    const failures = results.filter(({ ok }) => !ok).map(({ name, wrong }) => `${name}: ${wrong}`);
    const failed = failures.length;
    return {
      ...none,
      passed: results.length - failed,
      failed,
      failures,
      code: Math.min(failed, 1),
      seconds: seconds(),
    };
  } catch (error) {
    return { ...none, failed: 1, failures: [firstLine(error.message)], code: 1, complete: false, seconds: seconds() };
  } finally {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
  }
}

function minutesSince(begun) {
  return `${((performance.now() - begun) / 60_000).toFixed(1)} min`;
}

/**
 * The tools' binaries are optional packages, one per platform. If one is missing, the tool would fail with a stack
 * trace, so this explains it first.
 */
function requireTools() {
  const missing = steps
    .filter(({ tool }) => spawnSync(join(BIN, tool), ['--version'], { env }).status !== 0)
    .map(({ tool }) => tool);
  if (missing.length === 0) return;
  const each = missing.length === 1 ? 'does' : 'do';
  console.error(
    `${missing.join(' and ')} ${each} not start: the programs are optional packages that are not installed. Run: npm ci --include=optional`,
  );
  process.exit(1);
}

function requireCache() {
  try {
    mkdirSync(join(CHECKOUT, '.cache'), { recursive: true });
    accessSync(join(CHECKOUT, '.cache'), constants.W_OK);
  } catch (error) {
    console.error(
      `The tests write to ${join(CHECKOUT, '.cache')}, which cannot be written (${error.code}). Run them in a copy that can be.`,
    );
    process.exit(1);
  }
}

function requireTestPackages() {
  try {
    installTestPackages(console.log);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

function findNode() {
  try {
    if (existsSync(join(CHECKOUT, 'node_modules'))) return findWorkingNode();
    console.error('The dependencies are not installed yet. Run: npm ci');
  } catch (error) {
    console.error(error.message);
  }
  process.exit(1);
}

/** The checks, one after the other. They leave the tests the larger part of the machine. */
async function check() {
  for (const step of steps) if (!interrupted) results.push(await run(step));
}

/** Runs one check and prints its output below its name, when it ends: tests may write at the same time. */
async function run({ name, tool, args: toolArgs }) {
  const started = performance.now();
  const output = [];
  const code = await execute(join(BIN, tool), toolArgs, output);
  const seconds = (performance.now() - started) / 1000;
  console.log(`\n> ${name}: ${tool} ${toolArgs.join(' ')} (${seconds.toFixed(1)} s)\n${output.join('')}`);
  return { name, ok: code === 0, seconds };
}

/** `only` contains parts of paths. If it is empty, all tests run. */
async function runTests(only) {
  console.log('\n> tests: vitest run');
  const started = performance.now();
  const first = await runVitest([...(changedOnly ? ['--changed', '--passWithNoTests'] : []), ...only]);
  const last = await runAgain(first);
  return { ...countTests(last), code: last.code, seconds: (performance.now() - started) / 1000 };
}

/**
 * Runs the files that failed once more, with nothing beside them, and returns the results with theirs. On a machine
 * that does much else, one of many thousand tests may fail for want of time; a fault fails again. Which passed only
 * then is told, because the test is at fault.
 */
async function runAgain(first) {
  const failed = (first.files ?? []).filter(({ status }) => status === 'failed').map(({ name }) => name);
  if (first.code === 0 || !whole || deep || interrupted) return first;
  if (failed.length === 0 || failed.length > AGAIN_MAX) return first;
  console.log(`\n> tests that failed, once more and alone: ${failed.map(nameOf).join(' ')}`);
  const again = await runVitest(['--no-file-parallelism', ...failed.map(nameOf)]);
  if (again.files === null) return first;
  const passed = again.files.filter(({ status }) => status !== 'failed').map(({ name }) => name);
  const unsteady = first.files.filter(({ name }) => passed.includes(name)).flatMap(failuresOf);
  const rest = first.files.filter(({ name }) => !failed.includes(name));
  return { code: again.code, files: [...rest, ...again.files], unsteady };
}

/** The exit code, and the results of each file; null if vitest ended before it wrote them. */
async function runVitest(vitestArgs) {
  const code = await execute(node.file, [
    join(CHECKOUT, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${REPORT}`,
    ...vitestArgs,
  ]);
  if (!existsSync(REPORT)) return { code, files: null, unsteady: [] };
  const { testResults: files } = JSON.parse(readFileSync(REPORT, 'utf8'));
  rmSync(REPORT);
  return { code, files, unsteady: [] };
}

/** Runs a program and returns its exit code. Its output goes to this process's, or into `output` if that is given. */
function execute(file, fileArgs, output) {
  const to = output === undefined ? 'inherit' : 'pipe';
  return new Promise((done) => {
    const child = spawn(file, fileArgs, { cwd: CHECKOUT, env, stdio: ['ignore', to, to] });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => output.push(text));
    // Nothing else is started after a signal. A terminal's Ctrl-C reaches the child as well, so it is not forwarded.
    const stop = (signal) => {
      interrupted = true;
      if (signal === 'SIGTERM') child.kill(signal);
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    child.on('error', (error) => {
      console.error(`${file}: ${error.message}`);
      done(1);
    });
    child.on('close', (code) => {
      process.off('SIGTERM', stop);
      process.off('SIGINT', stop);
      done(code ?? 1);
    });
  });
}

/** A file that failed to load, or whose hooks failed, has no failed test, but counts as a failure. */
function countTests({ code, files, unsteady }) {
  if (files === null)
    return { passed: 0, failed: 1, known: 0, skipped: 0, failures: [], unsteady, slowest: [], complete: false };
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const countOf = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  const brokenFiles = files.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const failed = countOf('failed') + brokenFiles;
  const failures = files.flatMap(failuresOf);
  // Tests that are expected to fail, and did: vitest reports them as passed.
  const known = tests.filter(({ status, meta }) => status === 'passed' && meta?.isKnownFailure === true).length;
  if (failed === 0 && code !== 0) failures.push('An error outside of every test: look for "Unhandled" above');
  return {
    failures,
    unsteady,
    slowest: files.map(({ name, startTime, endTime }) => ({
      name: nameOf(name),
      seconds: (endTime - startTime) / 1000,
    })),
    passed: countOf('passed') - known,
    known,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: countOf('pending', 'skipped', 'todo'),
    complete: true,
  };
}

function nameOf(file) {
  return relative(CHECKOUT, file);
}

/** One line for each failed test of a file, or one line if the file failed as a whole. */
function failuresOf({ name, status, message, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && failed.length === 0) return [`${nameOf(name)}: ${firstLine(message)}`];
  return failed.map((test) => `${nameOf(name)} > ${test.fullName.trim()}: ${firstLine(test.failureMessages[0])}`);
}

function firstLine(text) {
  return stripVTControlCharacters(text ?? '')
    .split('\n', 1)[0]
    .slice(0, 300);
}

/** Prints the table, and the counts on the last line. A failed check counts as a failure. */
function summarise() {
  if (filters.length === 0 && tests.slowest.length > 0) {
    console.log(`\nThe ${SLOWEST_TOLD} slowest files`);
    const slowest = tests.slowest
      .slice()
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, SLOWEST_TOLD);
    for (const { name, seconds } of slowest) console.log(`  ${seconds.toFixed(1).padStart(6)} s  ${name}`);
  }
  if (tests.failures.length > 0) {
    console.log('\nFailed tests');
    for (const line of tests.failures.slice(0, FAILURES_TOLD)) console.log(`  ${line}`);
    if (tests.failures.length > FAILURES_TOLD) console.log(`  … and ${tests.failures.length - FAILURES_TOLD} more`);
  }
  if ((tests.unsteady ?? []).length > 0) {
    console.log('\nFailed beside others, passed alone: these tests need mending');
    for (const line of tests.unsteady) console.log(`  ${line}`);
  }
  console.log('\nSummary');
  for (const { name, ok, seconds } of results)
    console.log(`  ${ok ? 'ok    ' : 'FAILED'}  ${name} (${seconds.toFixed(1)} s)`);
  for (const { name, code, seconds } of tests.parts ?? [])
    console.log(`  ${code === 0 ? 'ok    ' : 'FAILED'}  part ${name} (${seconds.toFixed(1)} s)`);
  const note = tests.complete ? '' : ', the run ended before its report';
  console.log(
    `  ${tests.code === 0 ? 'ok    ' : 'FAILED'}  tests (${tests.seconds.toFixed(1)} s${tests.skipped > 0 ? `, ${tests.skipped} skipped` : ''}${note})`,
  );
  const failed = tests.failed + results.filter((result) => !result.ok).length;
  const known = tests.known > 0 ? `, ${tests.known} failed as expected` : '';
  console.log(`${tests.passed} passed, ${failed} failed${known}`);
  return failed === 0 && tests.code === 0 ? 0 : 1;
}
