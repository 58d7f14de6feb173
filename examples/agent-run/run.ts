/**
 * `npm run example`: starts the agent and a gateway that offers it, sends it a task, and shows what that cost.
 * Everything is on free ports of this machine, and gone afterwards.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import type { JSONWebKeySet } from 'jose';
import { ask, type Gateway } from './client.ts';
import { draw, get, sumOf, usd, verify, type Generation, type Paint } from './receipt-tree.ts';

const AGENT = 'example/speechwriter';
const QUESTION = 'What is a tollgate?';
const MAX_COST = '0.05';

/** What a gateway needs to know of the agent. */
const configFor = (endpoint: string) => `
[[agents]]
name = "${AGENT}"
display_name = "Speechwriter"
provider_name = "Example"
endpoint = "${endpoint}"

[agents.pricing]
per_call = 0.01      # USD for the agent's own work
nested_max = 0.02    # what it may spend on calls of its own, where the client names no max_cost
`;

interface Running extends Gateway {
  close(): Promise<void>;
}

/** A gateway as `npm start` has it, with the demo's model and tools, and with the services of `config`. */
async function startGateway(config: string, dir: string, stopped: AbortSignal): Promise<Running> {
  const file = join(dir, 'tollgate.toml');
  const data = join(dir, 'data');
  await writeFile(file, config);
  const launcher = fileURLToPath(new URL('../../bin/tollgate.mjs', import.meta.url));
  const args = [launcher, 'start', '--config', file, '--data', data, '--host', '127.0.0.1', '--port', '0'];
  // In a group of its own: a Ctrl-C ends it in its turn, not all at once; by the channel it ends with this process,
  // however that does.
  // oxlint-disable-next-line node/no-process-env -- the databases that the machine may have for gateways are left alone
  const { DATABASE_URL: _database, REDIS_URL: _redis, ...env } = process.env;
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], detached: true, env });
  const output = child.stdout!;
  const exited = once(child, 'exit');
  const close = async () => {
    child.kill();
    await exited;
  };
  try {
    const listening = async () => {
      for await (const line of createInterface({ input: output })) if (line.includes('Ctrl-C stops it')) return;
      throw new Error('The gateway ended while it started; what it wrote is above');
    };
    await Promise.race([listening(), once(stopped, 'abort').then(() => Promise.reject(new Error('Stopped')))]);
    output.resume();
    const { base_url: url, api_key: key } = JSON.parse(await readFile(join(data, 'dev.json'), 'utf8')) as {
      base_url: string;
      api_key: string;
    };
    return { url, key, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function show(gateway: Gateway, agentUrl: string, paint: Paint): Promise<void> {
  const print = (text = '') => process.stdout.write(`${text}\n`);
  const balance = async () =>
    (await get<{ balance_micro_usdc: number }>(gateway, '/api/v1/session/balance')).balance_micro_usdc;

  print(`${paint('dim', 'Gateway')}  ${gateway.url}`);
  print(`${paint('dim', 'Agent')}    ${agentUrl}, offered as ${AGENT}`);
  print();
  const before = await balance();
  print(`${paint('bold', QUESTION)}  ${paint('dim', `(at most ${MAX_COST} USD)`)}`);
  const { text, data, generation } = await ask(gateway, AGENT, QUESTION, MAX_COST, (words) =>
    print(paint('dim', `  … ${words}`)),
  );
  print(`\n${text}`);
  print(paint('dim', JSON.stringify(data)));

  const { data: tree } = await get<{ data: Generation }>(gateway, `/api/v1/generation?id=${generation}`);
  // All that is needed to verify receipts, now or in ten years.
  await verify(tree, await get<JSONWebKeySet>(gateway, '/.well-known/jwks.json'));
  print(`\n${paint('bold', 'What it cost')}  ${paint('dim', 'USD')}\n`);
  for (const line of draw(tree, paint)) print(line);

  const amount = (type: string) => tree.entries.find((entry) => entry.type === type)?.amount_micro_usdc ?? 0;
  const sum = sumOf(tree);
  print();
  print(`${paint('dim', 'Locked   ')}${usd(amount('lock'))}  before anything was sent: max_cost`);
  print(
    `${paint('dim', 'Charged  ')}${usd(sum)}  the sum of the tree: ${usd(amount('settle'))} for the agent, ${usd(amount('lend'))} for its calls`,
  );
  print(`${paint('dim', 'Returned ')}${usd(amount('refund'))}`);
  const after = await balance();
  print(`${paint('dim', 'Balance  ')}${usd(before)} → ${usd(after)}, a drop of ${usd(before - after)}`);
  if (before - after !== sum) throw new Error('The balance dropped by something else than the sum of the tree');
  print(paint('green', '✓ The receipts are good, and the sums are the same.'));
}

const stop = new AbortController();
process.on('SIGINT', () => stop.abort()).on('SIGTERM', () => stop.abort());
const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });
const { startAgent } = await import('./agent.ts').catch((error: NodeJS.ErrnoException) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('The example needs packages that "npm ci --omit=dev" leaves out. Run: npm ci');
  return process.exit(1);
});
const dir = await mkdtemp(join(tmpdir(), 'tollgate-example-'));
const ends: (() => Promise<void>)[] = [() => rm(dir, { recursive: true, force: true })];
try {
  const agent = await startAgent();
  ends.push(() => agent.close());
  const gateway = await startGateway(configFor(agent.url), dir, stop.signal);
  ends.push(() => gateway.close());
  await Promise.race([show(gateway, agent.url, paint), once(stop.signal, 'abort')]);
} catch (error) {
  if (!stop.signal.aborted) {
    process.exitCode = 1;
    console.error(error);
  }
} finally {
  for (const end of ends.toReversed()) await end();
}
process.exit();
