/**
 * `node bench/packages.ts`: measures a streamed chat call of a package of the AI SDK in a process of its own, compared
 * with the same call within this process, with the package's own `fetch`, and with the vendor's bytes alone. `--rounds`
 * and `--calls` set how many.
 */
import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent, request } from 'undici';
import { createSdkWorkers } from '../src/ai-sdk/workers.ts';
import { toChatCall } from '../src/ai-sdk/worker/call-options.ts';
import { ChunkWriter } from '../src/ai-sdk/worker/chunk-writer.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { MODELS } from './upstream/replies.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, calls: { type: 'string', default: '300' } },
});
const AT_ONCE = 16;
const body = {
  model: MODELS.wire,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: 'What does a gateway between callers and providers of models do?' }],
};

const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
const baseURL = `http://127.0.0.1:${await announcedPort(upstream)}/v1`;
const workers = createSdkWorkers({
  connectionsMax: 100,
  headTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  log: (sdk, text) => console.error(sdk, text),
});
const dispatcher = workers.open({
  kind: 'sdk',
  sdk: '@ai-sdk/openai-compatible',
  settings: { baseURL, name: 'bench', includeUsage: true },
  secrets: {},
  directory: fileURLToPath(new URL('..', import.meta.url)),
});
const agent = new Agent({ connections: AT_ONCE });
const provider = createOpenAICompatible({ baseURL, name: 'bench', includeUsage: true });

const read = async (by: Agent | typeof dispatcher, url: string) => {
  const reply = await request(url, { dispatcher: by, method: 'POST', body: JSON.stringify(body) });
  for await (const _ of reply.body);
};

/** Takes the chunks that a stream of the gateway would get. */
class Sink extends Writable {
  headersSent = false;
  respond(): void {
    this.headersSent = true;
  }
  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    done();
  }
}

const LANES = {
  'bytes of the vendor alone': () => read(agent, `${baseURL}/chat/completions`),
  'a package in this process': async () => {
    const model = provider.languageModel(MODELS.wire);
    const { options, warnings, logprobs } = toChatCall(body, model.provider);
    const { stream } = await model.doStream(options);
    const sink = new Sink() as never;
    await new ChunkWriter({ stream: sink, modelId: MODELS.wire, warnings, logprobs }).writeAll(stream);
  },
  'a package in a process of its own': () => read(dispatcher, 'http://ai-sdk/chat/completions'),
};

const childrenOf = () =>
  readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    .split(' ')
    .filter((pid) => pid !== '' && Number(pid) !== upstream.pid)
    .map(Number);

async function run(call: () => Promise<void>, calls: number) {
  const others = () => childrenOf().reduce((sum, pid) => sum + cpuMicros(pid), 0);
  const [began, here, beside] = [performance.now(), process.cpuUsage(), others()];
  let left = calls;
  const worker = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const { user, system } = process.cpuUsage(here);
  return { here: (user + system) / calls, beside: (others() - beside) / calls, ms: performance.now() - began };
}

const found = Object.entries(LANES).map(([name, call]) => ({
  name,
  call,
  runs: [] as Awaited<ReturnType<typeof run>>[],
}));
for (const { call } of found) await run(call, Number(values.calls));
for (let round = 0; round < Number(values.rounds); round++)
  for (const lane of found) lane.runs.push(await run(lane.call, Number(values.calls)));

const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length >> 1]!;
console.log('| a call | CPU µs here | CPU µs in its process | calls/s |\n| --- | ---: | ---: | ---: |');
for (const { name, runs } of found)
  console.log(
    `| ${name} | ${Math.round(median(runs.map(({ here }) => here)))} | ${Math.round(median(runs.map(({ beside }) => beside)))} | ${Math.round(
      median(runs.map(({ ms }) => Number(values.calls) / (ms / 1_000))),
    )} |`,
  );
await workers.close();
await agent.destroy();
await upstream.stop();
