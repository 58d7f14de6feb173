/**
 * `node bench/packages.ts`: what a chat call by a package of the AI SDK costs, in one run and over one upstream. The
 * gateway calls it by OpenAI's API, and by a package in a process of its own. Beside them the package is called without
 * a gateway: in such a process, and within the caller, as a gateway without a wall would call it. `--rounds` and
 * `--calls` set how many.
 */
import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { createSdkWorkers } from '../src/providers/ai-sdk/workers.ts';
import { toChatCall } from '../src/providers/ai-sdk/worker/call-options.ts';
import { ChunkWriter } from '../src/providers/ai-sdk/worker/chunk-writer.ts';
import { toCompletion } from '../src/providers/ai-sdk/worker/completion.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { tollgate, type Target } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { installTestPackages } from '../scripts/test-packages.mjs';

installTestPackages(console.error);
const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, calls: { type: 'string', default: '600' } },
});
const AT_ONCE = 16;
const KINDS = { 'a whole answer': MODELS.small, 'a stream of 100 events': MODELS.wire } as const;
type Kind = keyof typeof KINDS;
const kinds = Object.keys(KINDS) as Kind[];
const bodyOf = (kind: Kind, model: string = KINDS[kind]) => ({
  model,
  ...(KINDS[kind] === MODELS.wire ? { stream: true, stream_options: { include_usage: true } } : {}),
  max_tokens: 256,
  messages: [{ role: 'user', content: 'What does a gateway between callers and providers of models do?' }],
});

const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
const port = await announcedPort(upstream);
const baseURL = `http://127.0.0.1:${port}/v1`;
const settings = { baseURL, name: 'bench', includeUsage: true };
const agent = new Agent({ connections: AT_ONCE });
const provider = createOpenAICompatible(settings);
const workers = createSdkWorkers({
  connectionsMax: 100,
  headTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  wall: 'if_available',
  hidden: [],
  log: (sdk, text) => console.error(sdk, text),
  tell: ({ text }) => console.error(text),
});
const dispatcher = workers.open({
  kind: 'sdk',
  sdk: '@ai-sdk/openai-compatible',
  settings,
  secrets: {},
  directory: fileURLToPath(new URL('..', import.meta.url)),
});

const byPackage = (model: string) => `by-package/${model}`;
const block = (name: string, model: string, where: string) => `
[[models]]
name = "${name}"
provider_name = "bench"
context_length = 32768
[models.pricing]
prompt = 0.15
completion = 0.60
[models.params]
model = "${model}"
${where}
`;
const inline = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
const blocks = Object.values(KINDS).map(
  (model) =>
    block(model, model, `api_base = "${baseURL}"\napi_key = "bench"`) +
    block(byPackage(model), model, `sdk = "@ai-sdk/openai-compatible"\nsdk_settings = { ${inline.join(', ')} }`),
);
const gateway: Target = await tollgate(port, { blocks: blocks.join('') });

async function read(by: Agent | typeof dispatcher, url: string, body: object, headers: Record<string, string> = {}) {
  const reply = await request(url, {
    dispatcher: by,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (reply.statusCode !== 200) throw new Error(`${url} answered ${reply.statusCode}: ${await reply.body.text()}`);
  for await (const _ of reply.body);
}
const atGateway = (body: object) =>
  read(agent, `http://127.0.0.1:${gateway.port}/api/v1/chat/completions`, body, gateway.headers);

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

async function within(kind: Kind) {
  const modelId = KINDS[kind];
  const model = provider.languageModel(modelId);
  const { options, warnings, logprobs } = toChatCall(bodyOf(kind), model.provider);
  if (modelId !== MODELS.wire) {
    JSON.stringify(toCompletion(await model.doGenerate(options), { modelId, warnings, logprobs }));
    return;
  }
  const { stream } = await model.doStream(options);
  await new ChunkWriter({ stream: new Sink() as never, modelId, warnings, logprobs }).writeAll(stream);
}

interface Lane {
  readonly kind: Kind;
  readonly name: string;
  /** The process that calls: the gateway's, or this one. */
  readonly caller: number;
  readonly call: () => Promise<void>;
}

const GATEWAY = gateway.pid!;
const lanes: readonly Lane[] = kinds.flatMap((kind): readonly Lane[] => [
  {
    kind,
    name: "the gateway, OpenAI's API",
    caller: GATEWAY,
    call: () => atGateway(bodyOf(kind)),
  },
  {
    kind,
    name: 'the gateway, a package in its process',
    caller: GATEWAY,
    call: () => atGateway(bodyOf(kind, byPackage(KINDS[kind]))),
  },
  {
    kind,
    name: 'no gateway, a package in its process',
    caller: process.pid,
    call: () => read(dispatcher, 'http://ai-sdk/chat/completions', bodyOf(kind)),
  },
  { kind, name: 'no gateway, a package within the caller', caller: process.pid, call: () => within(kind) },
]);

const OTHERS: ReadonlySet<number> = new Set([upstream.pid, GATEWAY]);
const packagesOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((child) => child !== '' && !OTHERS.has(Number(child)))
    .map(Number);

async function run({ caller, call }: Lane, calls: number) {
  const beside = () => packagesOf(caller).reduce((sum, pid) => sum + cpuMicros(pid), 0);
  const [began, own, others] = [performance.now(), cpuMicros(caller), beside()];
  let left = calls;
  const worker = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return {
    own: (cpuMicros(caller) - own) / calls,
    beside: (beside() - others) / calls,
    perSecond: calls / ((performance.now() - began) / 1_000),
  };
}

const found = lanes.map((lane) => ({ lane, runs: [] as Awaited<ReturnType<typeof run>>[] }));
try {
  for (const { lane } of found) await run(lane, Number(values.calls));
  for (let round = 0; round < Number(values.rounds); round++)
    for (const { lane, runs } of found) runs.push(await run(lane, Number(values.calls)));
  report();
} finally {
  await gateway.stop();
  await workers.close();
  await agent.destroy();
  await upstream.stop();
}

function report(): void {
  console.log(`${AT_ONCE} at once, ${values.rounds} rounds of ${values.calls} calls each, in turns\n`);
  console.log(
    '| a call | by | CPU µs of the caller | CPU µs in the process of the package | together | ÷ OpenAI | calls/s |',
  );
  console.log('| --- | --- | ---: | ---: | ---: | ---: | ---: |');
  for (const kind of kinds) {
    const ofKind = found.filter(({ lane }) => lane.kind === kind);
    const [wire] = ofKind;
    for (const { lane, runs } of ofKind) {
      const ratios = runs.map((one, round) => together(one) / together(wire!.runs[round]!));
      const [own, beside] = [median(runs.map((one) => one.own)), median(runs.map((one) => one.beside))];
      const cells = [kind, lane.name, whole(own), whole(beside), whole(own + beside)];
      const last = whole(median(runs.map(({ perSecond }) => perSecond)));
      console.log(`| ${[...cells, median(ratios).toFixed(2), last].join(' | ')} |`);
    }
  }
}

function together({ own, beside }: { readonly own: number; readonly beside: number }): number {
  return own + beside;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1]!;
}
