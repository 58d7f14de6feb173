#!/usr/bin/env node
// The command `tollgate`. It is plain JavaScript that Node 20 and newer can run. It finds a Node that is new enough and
// runs src/main.ts in it. An installed package has JavaScript instead of TypeScript.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

// Since this version Node runs TypeScript without a build and includes node:sqlite.
const NODE_MAJOR_MIN = 24;
const NODE_MAJOR = Number.parseInt(process.versions.node, 10);

const root = fileURLToPath(new URL('..', import.meta.url));
/** The path, quoted for a shell if necessary. */
const quoted = /^[\w./-]+$/.test(root) ? root : `'${root.replaceAll("'", `'\\''`)}'`;
/** The package of a provider's proxy has another entry and no gateway. */
const main =
  ['src/main.js', 'src/program/cli/provider-main.js'].find((path) => existsSync(join(root, path))) ?? 'src/main.ts';
const packed = main.endsWith('.js');
const install = `cd ${quoted} && npm ci --omit=dev`;

// An installed package has all that it needs.
if (!packed && !existsSync(join(root, 'node_modules', 'commander'))) {
  fail(`The packages that tollgate needs are not installed.\nRun this once:  ${install}`);
} else if (NODE_MAJOR >= NODE_MAJOR_MIN) {
  takeLessMemory();
  // Compiled code is cached between runs, which halves the start time. If the directory isn't writable, nothing is
  // cached.
  const { enableCompileCache, registerHooks } = await import('node:module');
  const cache = join(root, 'node_modules', '.cache', 'tollgate');
  enableCompileCache?.(cache);
  // Worker threads and child processes read this variable. Without it the database's thread would compile its modules
  // at every start.
  process.env.NODE_COMPILE_CACHE ??= cache;
  await keepCompiledCode();
  if (!packed) findOwnModules(registerHooks);
  await import(`../${main}`);
} else if (packed) {
  fail(
    `tollgate needs Node ${NODE_MAJOR_MIN} or newer; this is Node ${process.versions.node}.\nInstall a newer one: https://nodejs.org/en/download`,
  );
} else {
  const { findWorkingNode } = await import('./working-node.mjs');
  try {
    handOver(findWorkingNode().file);
  } catch (error) {
    fail(error.message);
  }
}

/**
 * Starts a gateway again in this process, with a setting that the C library reads only at its start (decision 91). It
 * keeps its process id. Under a parent that talks to it, as that of workers does, it goes on as it is: the connection
 * would be lost. So it does where Node cannot replace itself: on Windows, and before version 26, where a failure would
 * end the process.
 */
function takeLessMemory() {
  const setting = memorySetting();
  if (setting === null || process.channel || !process.execve || NODE_MAJOR < 26) return;
  const all = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  try {
    process.execve(process.execPath, all, { ...process.env, ...setting });
  } catch {
    // A system that forbids it. The gateway only takes more memory.
  }
}

/**
 * One arena of the C library for all threads: without it, a gateway takes 100 MiB more. null for other commands, and if
 * the operator has set it.
 */
function memorySetting() {
  const isGateway = ['serve', 'start'].includes(process.argv[2]);
  return isGateway && process.env.MALLOC_ARENA_MAX === undefined ? { MALLOC_ARENA_MAX: '1' } : null;
}

/**
 * While a process does little, V8 collects garbage to return memory, and drops compiled code as well. The first calls
 * after a lull would compile it again. So V8 does this only after ten quiet minutes, not after 8 seconds. A V8 that
 * doesn't know a flag writes an error, so only versions whose flag is known get it.
 */
async function keepCompiledCode() {
  const flag = { 24: 'gc-memory-reducer-start-delay-ms', 26: 'memory-reducer-delay-ms' }[NODE_MAJOR];
  const { setFlagsFromString } = await import('node:v8');
  if (flag) setFlagsFromString(`--${flag}=600000`);
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

/**
 * Resolves modules of src/ and their aliases without asking Node. Node would look up the type and links of each module
 * on the disk and read the aliases of package.json again for each import. This would take a sixth of the start time.
 */
function findOwnModules(registerHooks) {
  const own = (path, from) => ({ url: new URL(path, from).href, format: 'module-typescript', shortCircuit: true });
  const base = pathToFileURL(root);
  const { imports = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const aliases = new Map(Object.entries(imports).map(([alias, path]) => [alias, own(path, base)]));
  registerHooks?.({
    resolve(specifier, context, next) {
      if (specifier.startsWith('.') && specifier.endsWith('.ts')) return own(specifier, context.parentURL);
      return aliases.get(specifier) ?? next(specifier, context);
    },
  });
}

function handOver(file) {
  const child = spawn(file, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    env: { ...process.env, ...memorySetting() },
    // The IPC channel lets the child see that this process has ended, however it ended.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // A terminal sends Ctrl-C to both processes, a supervisor only to this one. So the signal is forwarded. The child
  // counts signals that arrive together as one.
  const forward = (signal) => child.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  child.on('error', (error) => fail(`${file} could not be started: ${error.message}\nRun this again:  ${install}`));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.removeListener(name, forward);
    if (!signal) process.exit(code ?? 1);
    // End with the child's signal, so that shells and supervisors see the same result.
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
  });
}
