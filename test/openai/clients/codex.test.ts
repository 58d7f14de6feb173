import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKeeper } from '../../support/server-process.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';
import {
  call,
  chunk,
  startTranscripts,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// Codex as it is on npm, set up as docs/responses.md says. Only the model behind the gateway is played.

const MODEL = 'acme/coder';
const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let upstream: TranscriptUpstream;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  folder = installStranger('codex');
  upstream = await startTranscripts();
  spine = await startSpine({
    toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, contextLength: 200_000 }),
  });
}, INSTALL_MS);
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

/** One run of Codex with a prompt, in a folder with one file. */
async function codex(prompt: string, key = spine.key) {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-codex-'));
  const keeper = createKeeper([home]);
  const cwd = join(home, 'project');
  await mkdir(cwd);
  const path = join(cwd, 'greeting.txt');
  await writeFile(path, 'hello world\n');
  await writeFile(
    join(home, 'config.toml'),
    `model = "${MODEL}"
model_provider = "tollgate"
[model_providers.tollgate]
name = "tollgate"
base_url = "${spine.url}"
env_key = "TOLLGATE_API_KEY"
wire_api = "responses"
`,
  );
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [
        join(folder, 'node_modules/@openai/codex/bin/codex.js'),
        'exec',
        '--skip-git-repo-check',
        '--dangerously-bypass-approvals-and-sandbox',
        prompt,
      ],
      cwd,
      env: { PATH: process.env['PATH'], HOME: home, CODEX_HOME: home, TOLLGATE_API_KEY: key },
    });
    await child.exited;
    return { code: child.exitCode, said: child.output(), file: await readFile(path, 'utf8') };
  } finally {
    await keeper.close();
  }
}

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: readonly {
    readonly function: { readonly name: string; readonly parameters: { readonly properties: object } };
  }[];
}
const results = (body: unknown) => (body as Asked).messages.filter(({ role }) => role === 'tool');

test(
  'runs a shell command in two turns, and each turn is billed',
  async () => {
    upstream.answer = (body) => {
      if (results(body).length > 0) return { chunks: words('It is ', 'done.') };
      const { tools = [] } = body as unknown as Asked;
      const shell = tools.find(({ function: { name } }) =>
        /^(?:shell|exec_command|shell_command|local_shell)$/.test(name),
      )!;
      const one = "sed -i 's/world/tollgate/' greeting.txt";
      const args =
        'cmd' in shell.function.parameters.properties
          ? { cmd: one }
          : { command: shell.function.name === 'shell' ? ['bash', '-lc', one] : one };
      return {
        chunks: [
          chunk({ reasoning_content: 'A command does it.' }),
          call(0, { id: 'call_1', name: shell.function.name, args: JSON.stringify(args) }),
          chunk({}, 'tool_calls'),
          usage(),
        ],
      };
    };
    const before = await spine.balance();
    const asked = upstream.asked.length;
    const { code, said, file } = await codex('Greet tollgate in greeting.txt');
    expect(code, said).toBe(0);
    expect(file, said).toBe('hello tollgate\n');
    expect(said).toContain('It is done.');
    await spine.quiet();
    const turns = upstream.asked.length - asked;
    expect(turns).toBe(2);
    // Each turn has the same use: 20 + 2 × 9 micro-USD.
    expect(before.available - (await spine.balance()).available).toBe(BigInt(turns * 38));
  },
  RUN_MS,
);

test(
  'stops after one request on an empty balance, and shows why',
  async () => {
    const { key } = await spine.tenant('poor-codex', '0.000001');
    const asked = upstream.asked.length;
    const refusals = () => spine.logs.filter((line) => line.includes('"error":"insufficient_balance"')).length;
    const before = refusals();
    const { code, said } = await codex('Hi', key);
    expect(code).not.toBe(0);
    expect(said).toContain('Quota exceeded');
    expect(upstream.asked.length).toBe(asked);
    expect(refusals() - before).toBe(1);
  },
  RUN_MS,
);
