/**
 * `node bench/wires.ts`: measures streams of messages and responses, compared with chat, at providers that speak these
 * wires and at others, and of an agent that is asked by chat and by messages, in one run. Also measures the counting of
 * tokens compared with a bare Fastify route, and another router of messages. `--rounds` and `--ms` set the duration.
 * A package of the AI SDK calls the same upstream as chat does, with the CPU of its process in a column of its own.
 * `--only native` measures chat and the routes with this word in their names. `--only count` measures the counting.
 * `--before ../another-checkout` also measures the agent through the gateway of that checkout.
 */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator } from './generator.ts';
import { installPeers } from './install-peers.ts';
import type { Job } from './load/job.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { passthrough, tollgate, type Target } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { WIRE_EVENTS } from './upstream/wire-replies.ts';
import { installTestPackages } from '../scripts/test-packages.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '1500' },
    only: { type: 'string', default: '' },
    before: { type: 'string' },
  },
});
const PEER = '@musistudio/llms';
const CONNECTIONS = 16;
const NATIVE = 'bench-native';
/** Number of counts per account, below its rate limit of 600 per minute, and number of accounts. */
const COUNTS = 550;
const ACCOUNTS = 24;
/** The counts of the first accounts only compile the code. */
const WARMING = 8;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const COUNT_PATH = '/api/v1/messages/count_tokens';
const SYSTEM = 'You answer in one short paragraph, in plain words, without lists.';
const QUESTION = 'What does a gateway between callers and providers of models do with a request?';
const turns = [{ role: 'user', content: QUESTION }];

interface Lane {
  readonly name: string;
  readonly target: Target;
  readonly path: string;
  readonly body: object;
  readonly calls: number[];
  readonly micros: number[];
  /** Those of processes of packages. */
  readonly beside: number[];
}

const block = (name: string, port: number, wires: string) => `
[[models]]
name = "${name}"
display_name = "Bench ${name}"
provider_name = "bench"
context_length = 32768
[models.pricing]
prompt = 0.15
completion = 0.60
[models.params]
model = "${MODELS.wire}"
api_base = "http://127.0.0.1:${port}/v1"
api_key = "bench"
${wires}
`;

/** The same API, called by a package. */
const PACKAGE = 'bench-package';
const packageBlock = (port: number) => `
[[models]]
name = "${PACKAGE}"
provider_name = "bench"
context_length = 32768
[models.pricing]
prompt = 0.15
completion = 0.60
[models.params]
model = "${MODELS.wire}"
sdk = "@ai-sdk/openai-compatible"
sdk_settings = { baseURL = "http://127.0.0.1:${port}/v1", name = "bench", includeUsage = true }
`;

/** An agent that streams its answer in as many pieces. */
const AGENT = 'bench-agent';
const agent = (port: number) => `
[[agents]]
name = "${AGENT}"
display_name = "Bench agent"
provider_name = "bench"
endpoint = "http://127.0.0.1:${port}"
[agents.pricing]
per_call = 0.001
`;

installTestPackages(console.error);
const upstream = startProgram([here('upstream/main.ts')]);
const generator = startGenerator();
const targets: Target[] = [];
try {
  const port = await announcedPort(upstream);
  const blocks =
    block(MODELS.wire, port, '') +
    block(NATIVE, port, 'wires = ["messages", "responses"]') +
    agent(port) +
    packageBlock(port);
  const gateway = await tollgate(port, { blocks });
  targets.push(gateway);
  const lanes: Lane[] = [];
  const add = (name: string, target: Target, path: string, body: object) =>
    (name === 'chat' || name.includes(values.only)) &&
    lanes.push({ name, target, path, body, calls: [], micros: [], beside: [] });
  const messages = { system: SYSTEM, messages: turns, max_tokens: 256, stream: true };
  const responses = { instructions: SYSTEM, input: turns, max_output_tokens: 256, stream: true };
  const chat = { messages: [{ role: 'system', content: SYSTEM }, ...turns], max_tokens: 256, stream: true };
  add('chat', gateway, '/api/v1/chat/completions', { model: MODELS.wire, ...chat });
  add('chat, by a package of the AI SDK', gateway, '/api/v1/chat/completions', { model: PACKAGE, ...chat });
  add('messages, translated', gateway, '/api/v1/messages', { model: MODELS.wire, ...messages });
  add('messages, native', gateway, '/api/v1/messages', { model: NATIVE, ...messages });
  add('responses, translated', gateway, '/api/v1/responses', { model: MODELS.wire, ...responses });
  const unkept = { ...responses, store: false };
  add('responses, translated, not kept', gateway, '/api/v1/responses', { model: MODELS.wire, ...unkept });
  add('responses, native', gateway, '/api/v1/responses', { model: NATIVE, ...responses });
  const addAgent = (target: Target, when: string) => {
    const model = `a2a/${AGENT}`;
    add(`an agent, by chat${when}`, target, '/api/v1/chat/completions', { model, messages: turns, stream: true });
    add(`an agent, by messages${when}`, target, '/api/v1/messages', { ...messages, model });
  };
  addAgent(gateway, '');
  if (values.before !== undefined) {
    const before = await tollgate(port, { blocks, main: resolve(values.before, 'bin/tollgate.mjs') });
    targets.push(before);
    addAgent(before, ', before');
  }
  if (values.only === '') installPeers(PEER);
  if (values.only === '' && existsSync(here(`node_modules/${PEER}`))) {
    const router = await passthrough('targets/musistudio.ts', port, { path: '/v1/messages' });
    targets.push(router);
    add('messages by @musistudio/llms, not billed', router, router.path, {
      model: `bench,${MODELS.wire}`,
      ...messages,
    });
  }
  if (values.only === 'count') lanes.length = 0;
  for (const lane of lanes) await run(lane, 400);
  for (let round = 0; round < Number(values.rounds); round++)
    for (let at = 0; at < lanes.length; at++) {
      const lane = lanes[(at + round) % lanes.length]!;
      const { calls, micros, beside } = await run(lane, Number(values.ms));
      lane.calls.push(calls);
      lane.micros.push(micros);
      lane.beside.push(beside);
    }
  if (lanes.length > 0) report(lanes);
  const bare = await passthrough('targets/count-fastify.ts', port);
  targets.push(bare);
  await count(gateway, bare);
} finally {
  await Promise.all(targets.map((target) => target.stop()));
  generator.stop();
  await upstream.stop();
}

/** Streams per second, and CPU microseconds of the target's main thread for each stream. */
async function run({ name, target, path, body }: Lane, durationMs: number) {
  const cpu = () => cpuMicros(target.pid!, target.pid!);
  const ofChildren = () => childrenOf(target.pid!).reduce((sum, pid) => sum + cpuMicros(pid), 0);
  const [before, besideBefore] = [cpu(), ofChildren()];
  const shape: Job['shape'] = { kind: 'closed', connections: CONNECTIONS, durationMs };
  const done = await generator.run({ port: target.port, request: requestOf(target, path, body), shape });
  if (done.errors > 0 || done.calls === 0) throw new Error(`${name}: ${done.errors} failed: ${done.firstError}`);
  return {
    calls: (done.calls / done.elapsedMs) * 1_000,
    micros: (cpu() - before) / done.calls,
    beside: (ofChildren() - besideBefore) / done.calls,
  };
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

function requestOf(target: Target, path: string, body: object): string {
  const text = JSON.stringify(body);
  const headers = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...target.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`;
}

function report(lanes: readonly Lane[]): void {
  const chat = lanes[0]!;
  const ratio = (of: (lane: Lane) => readonly number[], lane: Lane, over: Lane) =>
    median(of(lane).map((value, round) => value / of(over)[round]!));
  console.log(`Streams of ${WIRE_EVENTS} events, ${CONNECTIONS} at once, ${values.rounds} rounds\n`);
  console.log('| route | streams/s | ÷ chat | CPU µs a stream | ÷ chat | µs of other processes |');
  console.log('| --- | ---: | ---: | ---: | ---: | ---: |');
  for (const lane of lanes) {
    const cells = [
      lane.name,
      Math.round(median(lane.calls)).toLocaleString('en'),
      ratio(({ calls }) => calls, lane, chat).toFixed(2),
      Math.round(median(lane.micros)).toLocaleString('en'),
      ratio(({ micros }) => micros, lane, chat).toFixed(2),
      Math.round(median(lane.beside)).toLocaleString('en'),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

/**
 * Counts the tokens of a prompt of 30 KB as often as the rate limits of the accounts allow, and calls a route that does
 * nothing else equally often.
 */
async function count(gateway: Target, bare: Target): Promise<void> {
  const text = 'The gateway knows the price before it forwards a question. '.repeat(500);
  const body = { model: MODELS.wire, system: SYSTEM, messages: [{ role: 'user', content: text }] };
  const shape: Job['shape'] = { kind: 'closed', connections: CONNECTIONS, durationMs: 10_000, callsMax: COUNTS };
  const endpoints = [counter('count_tokens', gateway), counter('a bare Fastify route', bare)] as const;
  let bytes = 0;
  for (let account = 0; account < ACCOUNTS; account++) {
    const headers = await gateway.openAccount!();
    for (const { target, sum } of endpoints) {
      const request = requestOf({ ...target, headers }, COUNT_PATH, body);
      bytes = request.length;
      const [before, mainBefore] = [cpuMicros(target.pid!), cpuMicros(target.pid!, target.pid!)];
      const done = await generator.run({ port: target.port, request, shape });
      if (done.errors > 0) throw new Error(`counting: ${done.firstError}`);
      if (account < WARMING) continue;
      sum.calls += done.calls;
      sum.ms += done.elapsedMs;
      sum.all += cpuMicros(target.pid!) - before;
      sum.main += cpuMicros(target.pid!, target.pid!) - mainBefore;
    }
  }
  console.log(`\nBodies of ${Math.round(bytes / 1000)} KB, ${CONNECTIONS} at once\n`);
  console.log('| route | counts/s | CPU µs a count | of the main thread |');
  console.log('| --- | ---: | ---: | ---: |');
  for (const { name, sum } of endpoints) {
    const perSecond = Math.round((sum.calls / sum.ms) * 1_000).toLocaleString('en');
    console.log(
      `| ${name} | ${perSecond} | ${Math.round(sum.all / sum.calls)} | ${Math.round(sum.main / sum.calls)} |`,
    );
  }
}

function counter(name: string, target: Target) {
  return { name, target, sum: { calls: 0, ms: 0, all: 0, main: 0 } };
}

function median(values_: readonly number[]): number {
  return values_.toSorted((a, b) => a - b)[Math.floor(values_.length / 2)]!;
}
