#!/usr/bin/env node
// Plain JavaScript that any Node from 20 on can run: it finds a Node that is new enough and hands over to src/main.ts.
// An installed package has JavaScript in its place.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

// TypeScript runs unbuilt, and node:sqlite is part of the platform, from here on.
const NODE_MAJOR_MIN = 24;

const root = fileURLToPath(new URL('..', import.meta.url));
/** For a shell, whatever is in the path. */
const quoted = /^[\w./-]+$/.test(root) ? root : `'${root.replaceAll("'", `'\\''`)}'`;
/** The package of a provider's proxy has another entry, and no gateway. */
const main = ['src/main.js', 'src/cli/provider-main.js'].find((path) => existsSync(join(root, path))) ?? 'src/main.ts';
const packed = main.endsWith('.js');
const install = packed ? 'npm install -g <the file of the package>' : `cd ${quoted} && npm ci`;
const bundled = join(root, 'node_modules', '.bin', 'node');

if (!existsSync(join(root, 'node_modules', 'commander'))) {
  fail(`The packages that tollgate needs are not installed.\nRun this once:  ${install}`);
} else if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN) {
  // Compiled code is kept between runs: halves the time of a start. Does nothing where the directory cannot be written.
  const { enableCompileCache, registerHooks } = await import('node:module');
  const cache = join(root, 'node_modules', '.cache', 'tollgate');
  enableCompileCache?.(cache);
  // Threads and child processes look here: without it the database's thread compiles all that it loads at every start.
  process.env.NODE_COMPILE_CACHE ??= cache;
  if (!packed) findOwnModules(registerHooks);
  await import(`../${main}`);
} else if (!existsSync(bundled) || realpathSync(bundled) === realpathSync(process.execPath)) {
  fail(
    packed
      ? `tollgate needs Node ${NODE_MAJOR_MIN} or newer; this is Node ${process.versions.node}.\nInstall a newer one: https://nodejs.org/en/download`
      : `tollgate needs Node ${NODE_MAJOR_MIN} or newer; this is Node ${process.versions.node}, and there is no newer one in node_modules/.bin.\n` +
          `Either run:  ${install} --include=optional   (brings one for Linux and macOS)\n` +
          `or install Node ${NODE_MAJOR_MIN} or newer: https://nodejs.org/en/download`,
  );
} else handOver();

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

/**
 * Says where the modules of src/ are. Node asks the disk for the type and the links of each module, and reads the
 * aliases of package.json anew for each import of one, which is a sixth of a start.
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

function handOver() {
  const child = spawn(bundled, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // Over the channel the child sees that this process is gone, however it ended.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // A terminal sends Ctrl-C to both processes, a supervisor only to this one. The child counts signals that come
  // together as one.
  const forward = (signal) => child.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  child.on('error', (error) => fail(`${bundled} could not be started: ${error.message}\nRun this again:  ${install}`));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.removeListener(name, forward);
    if (!signal) process.exit(code ?? 1);
    // Die as the child did, so that shells and supervisors see the same thing.
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
  });
}
