// Tests an image without a network, with the options of deploy/container/compose.yaml: starts a gateway, makes a call,
// dials in a provider, and stops everything. Needs docker or podman. Removes what it created.
//
//   node scripts/release/try-image.ts [--with docker|podman] IMAGE
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Program, startProgram } from './program.ts';

const LIMITS = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const GRACE_S = 60;
const UPSTREAM = 'http://127.0.0.1:4010/v1';
const GATEWAY = 'http://127.0.0.1:8402';
const CONFIG = ['--config', '/etc/tollgate/tollgate.toml'];
const PACKAGE = '/opt/tollgate/lib/node_modules/tollgate';

const modelBlock = (model: string, seller: string): string => `[[models]]
name = "${model}"
provider_name = "${seller}"
pricing = { prompt = 1, completion = 1 }
params = { model = "demo/chat", api_base = "${UPSTREAM}" }
`;
const GATEWAY_FILE = `server = { public_url = "${GATEWAY}" }\ntunnel = { providers = "anyone" }\n${modelBlock('try/sage', 'The gateway')}`;
const PROVIDER_FILE = `router = { url = "${GATEWAY}", siwx = { chain_id = "solana:mainnet", keypair_file = "/data/wallet.json" } }
${modelBlock('try/dialled', 'The proxy')}`;
/** Prints the cost of a call, in micro-USD. */
const CALL = `
const [model, key] = process.argv.slice(1);
const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' };
const ask = async (path, init) => {
  const answer = await fetch('${GATEWAY}/api/v1' + path, { headers, ...init });
  if (!answer.ok) throw new Error(path + ': ' + answer.status + ' ' + (await answer.text()));
  return answer.json();
};
const balance = async () => Math.round(Number((await ask('/session/balance')).balance_usd) * 1e6);
const before = await balance();
const body = JSON.stringify({ model, max_tokens: 20, messages: [{ role: 'user', content: 'What is a tollgate?' }] });
const { choices, usage } = await ask('/chat/completions', { method: 'POST', body });
const cost = Math.round(usage.cost * 1e6);
const taken = before - (await balance());
if (!choices[0].message.content || !(cost > 0) || taken !== cost)
  throw new Error('The call cost ' + cost + ', ' + taken + ' was taken: ' + JSON.stringify({ choices, usage }));
console.log(cost);`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { with: { type: 'string', default: 'docker' } },
});
const [image] = positionals;
if (image === undefined) {
  console.error('Name the image: node scripts/release/try-image.ts [--with docker|podman] IMAGE');
  process.exit(2);
}
const name = `tollgate-try-${randomBytes(4).toString('hex')}`;
const files = mkdtempSync(join(tmpdir(), 'tollgate-try-'));
const running: string[] = [];
try {
  await tryImage();
} finally {
  for (const each of running.toReversed()) silently('rm', '--force', '--volumes', each);
  for (const each of ['gateway', 'provider']) silently('volume', 'rm', '--force', `${name}-${each}`);
  rmSync(files, { recursive: true, force: true });
}

async function tryImage(): Promise<void> {
  const gateway = run('gateway', ['--network', 'none', ...config('gateway', GATEWAY_FILE)], ['serve', ...CONFIG]);
  const ready = howReady('gateway', await gateway.wrote('"listening"'));
  const bytes = Number(engine('image', 'inspect', '--format', '{{.Size}}', image!));
  tell('image', `${(bytes / 1e6).toFixed(0)} MB`);
  tell('gateway', ready);
  tell('user', checkOwner());
  checkHealth();
  tell('health', 'the check of the image passes');

  // All containers share the gateway's loopback interface, because there is no other network.
  const beside = ['--network', `container:${name}-gateway`];
  await run(
    'demo',
    ['--entrypoint', 'node', ...beside],
    [`${PACKAGE}/src/program/demo/provider.js`, '--port', '4010'],
  ).wrote('"url"');
  inside('gateway', 'tollgate', 'account', 'create', 'ada');
  inside('gateway', 'tollgate', 'account', 'credit', 'ada', '1', '--reference', 'try');
  const made = JSON.parse(inside('gateway', 'tollgate', 'key', 'create', 'ada', '--json')) as { readonly key: string };
  tell('chat', chat('try/sage', made.key));

  engine('run', '--rm', ...LIMITS, ...data('provider'), image!, 'keygen', '--chain', 'solana', '--out', 'wallet.json');
  const provider = run('provider', [...beside, ...config('provider', PROVIDER_FILE)], ['provide', ...CONFIG]);
  tell('provide', howReady('provider', await provider.wrote('ready')));
  tell('chat', chat('try/dialled', made.key));

  for (const [each, program] of [
    ['provider', provider],
    ['gateway', gateway],
  ] as const) {
    const asked = performance.now();
    engine('stop', '-t', String(GRACE_S), `${name}-${each}`);
    await program.ended();
    tell('SIGTERM', `ended the ${each} with code 0 after ${(performance.now() - asked).toFixed(0)} ms`);
  }
  engine('run', '--rm', ...LIMITS, '--network', 'none', ...data('gateway'), image!, 'audit');
  tell('audit', 'the books are right');
}

/** Runs the engine and returns its output. Throws with its error output if it fails. */
function engine(...args: readonly string[]): string {
  return execFileSync(values.with, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function silently(...args: readonly string[]): void {
  try {
    engine(...args);
  } catch {
    // The container was never created, or is already removed.
  }
}

/** Starts a container. The returned program has its output from the start and its exit code. */
function run(each: string, options: readonly string[], command: readonly string[]): Program {
  running.push(`${name}-${each}`);
  const args = ['run', '--name', `${name}-${each}`, ...LIMITS, ...data(each), ...options, image!, ...command];
  return startProgram(each, values.with, args);
}

function data(each: string): readonly string[] {
  return each === 'demo' ? [] : ['--volume', `${name}-${each}:/data`];
}

/** Writes a configuration file. Everybody may read it, because the image's user doesn't exist on this machine. */
function config(each: string, text: string): readonly string[] {
  const file = join(files, `${each}.toml`);
  chmodSync(files, 0o755);
  writeFileSync(file, text, { mode: 0o644 });
  return ['--volume', `${file}:/etc/tollgate/tollgate.toml:ro`];
}

function inside(each: string, ...command: readonly string[]): string {
  return engine('exec', `${name}-${each}`, ...command);
}

/** Reports the time from the start of the container to the given log line, and the CPU time and memory that it used. */
function howReady(each: string, line: string): string {
  const stat = inside(each, 'cat', '/proc/1/stat', '/proc/1/status');
  const fields = stat.slice(stat.indexOf(') ') + 2).split(' ');
  const kib = Number(/^VmRSS:\s+(\d+)/m.exec(stat)?.[1]);
  // User and system time, in hundredths of a second.
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * 10;
  const from = Date.parse(
    engine('inspect', '--format', '{{json .State.StartedAt}}', `${name}-${each}`).trim().slice(1, -1),
  );
  const { time } = JSON.parse(line) as { readonly time: number };
  return `ready after ${time - from} ms, with ${cpuMs} ms of processor time and ${Math.round(kib / 1024)} MiB`;
}

/**
 * Checks that all files of the program belong to root and that nobody else may write them, so that the program can't
 * change itself even with a writable root file system.
 */
function checkOwner(): string {
  const others = inside(
    'gateway',
    'find',
    '/opt/tollgate',
    '!',
    '-type',
    'l',
    '(',
    '!',
    '-user',
    'root',
    '-o',
    '-perm',
    '/022',
    ')',
  );
  if (others !== '') throw new Error(`Not root's alone:\n${others}`);
  return `${inside('gateway', 'id', '-un').trim()}; the program is root's`;
}

function checkHealth(): void {
  const [facts] = JSON.parse(engine('inspect', `${name}-gateway`)) as readonly {
    readonly Config: { readonly Healthcheck?: { readonly Test: readonly string[] } };
  }[];
  const test = facts?.Config.Healthcheck?.Test;
  if (test === undefined) throw new Error('The image has no health check: give podman --format docker when it builds.');
  inside('gateway', ...test.slice(1));
}

/** Makes a call as a customer. Throws if the balance has not decreased by the cost in the answer. */
function chat(model: string, key: string): string {
  const micros = Number(inside('gateway', 'node', '--input-type=module', '-e', CALL, model, key));
  return `${model} answered, and its ${micros} micro-USD are taken from the balance`;
}

function tell(what: string, text: string): void {
  console.log(`${what.padEnd(9)} ${text}`);
}
