// What `npm test` runs: types, lint, format, then the tests. Plain JavaScript that any Node since 20 starts; the
// work is done by the Node that npm installed.
//
//   node scripts/test.mjs                 everything
//   node scripts/test.mjs --deep          the same tests, with the long loops
//   node scripts/test.mjs --check         types, lint and format alone
//   node scripts/test.mjs billing/money   only the tests whose path holds this, without the checks
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join, relative, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const CHECKOUT = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');
const BIN = join(CHECKOUT, 'node_modules', '.bin');
const NODE_MAJOR_MIN = 24;
const SLOWEST_TOLD = 10;
const FAILURES_TOLD = 40;
const REPORT = join(CHECKOUT, '.cache', `test-report-${process.pid}.json`);

const args = process.argv.slice(2);
const deep = args.includes('--deep');
const checkOnly = args.includes('--check');
const filters = args.filter((argument) => argument !== '--deep' && argument !== '--check');

const node = findNode();
const env = {
  ...process.env,
  PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`,
  ...(deep ? { TOLLGATE_DEEP: '1' } : {}),
};
const steps = [
  { name: 'types', tool: 'tsc', args: ['--noEmit'] },
  { name: 'lint', tool: 'oxlint', args: ['--type-aware', '--quiet'] },
  { name: 'format', tool: 'oxfmt', args: ['--check'] },
];
const results = [];

if (filters.length === 0) requireTools();
if (!checkOnly) requireCache();
console.log(`tollgate ${checkOnly ? 'checks' : 'tests'}${deep ? ' (deep)' : ''}, Node ${node.version}`);
if (filters.length === 0) for (const step of steps) results.push(await run(step));
const tests = checkOnly ? null : await runTests();
process.exitCode = checkOnly ? Number(results.some(({ ok }) => !ok)) : summarise();

/** Their programs are optional packages, one for each platform: without it a tool ends with a stack trace. */
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

function findNode() {
  const bundled = join(BIN, 'node');
  for (const file of [bundled, process.execPath]) {
    const version = existsSync(file) ? spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout?.trim() : undefined;
    if (version !== undefined && Number.parseInt(version.slice(1), 10) >= NODE_MAJOR_MIN) return { file, version };
  }
  console.error(
    existsSync(join(CHECKOUT, 'node_modules'))
      ? `tollgate needs Node ${NODE_MAJOR_MIN} or later and this is ${process.version}. "npm ci" brings one for Linux and macOS, unless optional packages are left out (--omit=optional); there is none for ${process.platform}-${process.arch} in node_modules. Install Node ${NODE_MAJOR_MIN}: https://nodejs.org`
      : 'The dependencies are not installed yet. Run: npm ci',
  );
  process.exit(1);
}

/** Runs one check with its own output below its name. */
async function run({ name, tool, args: toolArgs }) {
  console.log(`\n> ${name}: ${tool} ${toolArgs.join(' ')}`);
  const started = performance.now();
  const code = await execute(join(BIN, tool), toolArgs);
  return { name, ok: code === 0, seconds: (performance.now() - started) / 1000 };
}

async function runTests() {
  console.log('\n> tests: vitest run');
  const started = performance.now();
  const code = await execute(node.file, [
    join(CHECKOUT, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${REPORT}`,
    ...filters,
  ]);
  return { ...countTests(code), code, seconds: (performance.now() - started) / 1000 };
}

function execute(file, fileArgs) {
  return new Promise((done) => {
    const child = spawn(file, fileArgs, { cwd: CHECKOUT, env, stdio: ['ignore', 'inherit', 'inherit'] });
    // A Ctrl-C reaches the child as well; its exit code is what counts.
    const forward = (signal) => child.kill(signal);
    const ignore = () => {};
    process.on('SIGTERM', forward);
    process.on('SIGINT', ignore);
    child.on('error', (error) => {
      console.error(`${file}: ${error.message}`);
      done(1);
    });
    child.on('close', (code) => {
      process.off('SIGTERM', forward);
      process.off('SIGINT', ignore);
      done(code ?? 1);
    });
  });
}

/** A file that failed to load or whose hooks failed has no failed test of its own, yet is a failure. */
function countTests(code) {
  if (!existsSync(REPORT)) return { passed: 0, failed: 1, skipped: 0, failures: [], slowest: [], complete: false };
  const report = JSON.parse(readFileSync(REPORT, 'utf8'));
  rmSync(REPORT);
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const failed = report.numFailedTests + brokenFiles;
  const failures = report.testResults.flatMap(failuresOf);
  if (failed === 0 && code !== 0) failures.push('An error outside of every test: look for "Unhandled" above');
  return {
    failures,
    slowest: report.testResults.map(({ name, startTime, endTime }) => ({
      name: nameOf(name),
      seconds: (endTime - startTime) / 1000,
    })),
    passed: report.numPassedTests,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
    complete: true,
  };
}

function nameOf(file) {
  return relative(CHECKOUT, file);
}

/** A line for each failed test of a file, and one for a file that failed as a whole. */
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

/** Prints the table and, last and alone on its line, the counts. A failed check counts as a failure. */
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
  console.log('\nSummary');
  for (const { name, ok, seconds } of results)
    console.log(`  ${ok ? 'ok    ' : 'FAILED'}  ${name} (${seconds.toFixed(1)} s)`);
  const note = tests.complete ? '' : ', the run ended before its report';
  console.log(
    `  ${tests.code === 0 ? 'ok    ' : 'FAILED'}  tests (${tests.seconds.toFixed(1)} s${tests.skipped > 0 ? `, ${tests.skipped} skipped` : ''}${note})`,
  );
  const failed = tests.failed + results.filter((result) => !result.ok).length;
  console.log(`${tests.passed} passed, ${failed} failed`);
  return failed === 0 && tests.code === 0 ? 0 : 1;
}
