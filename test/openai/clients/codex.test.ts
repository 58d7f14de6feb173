import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKeeper } from '../../support/server-process.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';
import {
  CONTEXT_LENGTH,
  COST,
  type OfferedTool,
  startPlayedModel,
  type PlayedModel,
  type Said,
} from './support/played-model.ts';

// Codex as it is on npm, set up as docs/clients/codex.md says. Only the model behind the gateway is played.

const TRANSLATED = 'acme/coder';
const NATIVE = 'acme/native';
const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let upstream: PlayedModel;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  folder = installStranger('codex');
  upstream = await startPlayedModel();
  const model = { provider: 'Acme', url: upstream.url, contextLength: CONTEXT_LENGTH };
  const blocks =
    modelBlock({ ...model, name: TRANSLATED }) +
    modelBlock({ ...model, name: NATIVE, params: 'wires = ["responses"]' });
  spine = await startSpine({ toml: UNHURRIED + blocks });
}, INSTALL_MS);
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const program = () => join(folder, 'node_modules/@openai/codex/bin/codex.js');

interface RunOptions {
  readonly key?: string;
  /** Codex knows the model as one that takes patches: it offers a custom tool for them. */
  readonly patches?: boolean;
  readonly webSockets?: boolean;
  /** A command prints the key. Then Codex asks for the list of models too. */
  readonly byCommand?: boolean;
}

/** One run of Codex with a prompt, in a folder with one file. */
async function codex(
  prompt: string,
  model: string,
  { key = spine.key, patches = false, webSockets = false, byCommand = false }: RunOptions = {},
) {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-codex-'));
  const keeper = createKeeper([home]);
  const cwd = join(home, 'project');
  const env = { PATH: process.env['PATH'], HOME: home, CODEX_HOME: home, TOLLGATE_API_KEY: key };
  await mkdir(cwd);
  const path = join(cwd, 'greeting.txt');
  const catalog = join(home, 'models.json');
  await writeFile(path, 'hello world\n');
  if (patches) await writeFile(catalog, JSON.stringify({ models: [{ ...modelWithPatches(env), slug: model }] }));
  await writeFile(
    join(home, 'config.toml'),
    `model = "${model}"
model_provider = "tollgate"
${patches ? `model_catalog_json = "${catalog}"` : ''}
[model_providers.tollgate]
name = "tollgate"
base_url = "${spine.url}"
${byCommand ? '' : 'env_key = "TOLLGATE_API_KEY"'}
wire_api = "responses"
${webSockets ? 'supports_websockets = true' : ''}
${byCommand ? `[model_providers.tollgate.auth]\ncommand = "/bin/echo"\nargs = ["${key}"]` : ''}
`,
  );
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [program(), 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
      cwd,
      env,
    });
    await child.exited;
    return { code: child.exitCode, said: child.output(), file: await readFile(path, 'utf8') };
  } finally {
    await keeper.close();
  }
}

/** A model that Codex itself describes so. */
function modelWithPatches(env: NodeJS.ProcessEnv): object {
  const listed = execFileSync(process.execPath, [program(), 'debug', 'models'], {
    encoding: 'utf8',
    env,
    maxBuffer: 16 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { models } = JSON.parse(listed) as { models: readonly { slug: string; apply_patch_tool_type?: string }[] };
  return models.find(({ slug, apply_patch_tool_type: type }) => slug === 'gpt-5.5' && type === 'freeform')!;
}

describe.each([
  ['chat', TRANSLATED, '/v1/chat/completions'],
  ['responses', NATIVE, '/v1/responses'],
] as const)('at a provider that speaks %s', (wire, model, path) => {
  /** A run in which the model does one thing and says that it is done. Each of the two turns is billed. */
  async function acts(act: (tools: readonly OfferedTool[]) => NonNullable<Said['call']>, options: RunOptions = {}) {
    upstream.answer = ({ tools, results }) =>
      results.length > 0 ? { text: 'It is done.' } : { thinking: 'A command does it.', call: act(tools) };
    const before = await spine.balance();
    const asked = upstream.asked.length;
    const { code, said, file } = await codex('Greet tollgate in greeting.txt', model, options);
    expect(code, said).toBe(0);
    expect(file, said).toBe('hello tollgate\n');
    expect(said).toContain('It is done.');
    const turns = upstream.asked.slice(asked);
    expect(turns.map(({ reached }) => reached.path)).toEqual([path, path]);
    await spine.quiet();
    expect(before.available - (await spine.balance()).available).toBe(2n * COST);
  }

  test(
    'runs a shell command in two turns, and each turn is billed',
    () => acts((tools) => shell(tools, "sed -i 's/world/tollgate/' greeting.txt")),
    RUN_MS,
  );

  test(
    'does the same over a WebSocket',
    async () => {
      let opened = 0;
      const count = () => void opened++;
      spine.app.server.server.on('upgrade', count);
      await acts((tools) => shell(tools, "sed -i 's/world/tollgate/' greeting.txt"), { webSockets: true });
      spine.app.server.server.off('upgrade', count);
      expect(opened).toBeGreaterThan(0);
    },
    RUN_MS,
  );

  test('changes a file by a patch in two turns, and each turn is billed', () => acts(patch, { patches: true }), RUN_MS);

  test(
    'stops after one request on an empty balance, and shows why',
    async () => {
      const { key } = await spine.tenant(`poor-${wire}`, '0.000001');
      const asked = upstream.asked.length;
      const refusals = () => spine.logs.filter((line) => line.includes('"error":"insufficient_balance"')).length;
      const before = refusals();
      const { code, said } = await codex('Hi', model, { key });
      expect(code).not.toBe(0);
      expect(said).toContain('Quota exceeded');
      expect(upstream.asked.length).toBe(asked);
      expect(refusals() - before).toBe(1);
    },
    RUN_MS,
  );
});

test(
  'takes its key from a command, and then the list of models without an error',
  async () => {
    upstream.answer = () => ({ text: 'It is done.' });
    const { code, said } = await codex('Hi', NATIVE, { byCommand: true });
    expect(code, said).toBe(0);
    expect(said).not.toContain('ERROR');
  },
  RUN_MS,
);

function shell(tools: readonly OfferedTool[], command: string): NonNullable<Said['call']> {
  const { name, parameters } = tools.find((tool) =>
    /^(?:shell|exec_command|shell_command|local_shell)$/.test(tool.name),
  )!;
  const input =
    'cmd' in parameters!.properties
      ? { cmd: command }
      : { command: name === 'shell' ? ['bash', '-lc', command] : command };
  return { id: 'call_1', name, input };
}

const PATCH = `*** Begin Patch
*** Update File: greeting.txt
@@
-hello world
+hello tollgate
*** End Patch`;

function patch(tools: readonly OfferedTool[]): NonNullable<Said['call']> {
  expect(tools.map(({ name }) => name)).toContain('apply_patch');
  return { id: 'call_1', name: 'apply_patch', input: PATCH };
}
