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
  SIGNATURE,
  startPlayedModel,
  type PlayedModel,
} from './support/played-model.ts';

// Gemini CLI as it is on npm, set up as docs/clients/gemini-cli.md says. Only the model behind the gateway is played.

const TRANSLATED = 'acme/coder';
const NATIVE = 'acme/native';
const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let upstream: PlayedModel;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  folder = installStranger('gemini-cli');
  upstream = await startPlayedModel();
  const model = { provider: 'Acme', url: upstream.url, contextLength: CONTEXT_LENGTH };
  const blocks =
    modelBlock({ ...model, name: TRANSLATED }) + modelBlock({ ...model, name: NATIVE, params: 'wires = ["gemini"]' });
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

/** One run of Gemini CLI with a prompt, in a folder with one file. */
async function gemini(prompt: string, model: string, key = spine.key) {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-gemini-'));
  const keeper = createKeeper([home]);
  const cwd = join(home, 'project');
  await mkdir(cwd);
  await mkdir(join(home, '.gemini'));
  const path = join(cwd, 'greeting.txt');
  await writeFile(path, 'hello world\n');
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { disableAutoUpdate: true, disableUpdateNag: true, maxAttempts: 1 },
  };
  await writeFile(join(home, '.gemini', 'settings.json'), JSON.stringify(settings));
  const variables = [`GEMINI_API_KEY=${key}`, `GOOGLE_GEMINI_BASE_URL=${spine.origin}/api`, `GEMINI_MODEL=${model}`];
  await writeFile(join(home, '.gemini', '.env'), variables.join('\n'));
  const env = { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1' };
  const program = join(folder, 'node_modules/@google/gemini-cli/bundle/gemini.js');
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [program, '--skip-trust', '--yolo', '--prompt', prompt],
      cwd,
      env,
    });
    await child.exited;
    return { code: child.exitCode, said: child.output(), file: await readFile(path, 'utf8') };
  } finally {
    await keeper.close();
  }
}

describe.each([
  ['chat', TRANSLATED],
  ['gemini', NATIVE],
] as const)('at a provider that speaks %s', (wire, model) => {
  test(
    'writes a file in two turns, and each turn is billed',
    async () => {
      upstream.answer = ({ tools, results }) =>
        results.length > 0 ? { text: 'It is done.' } : { thinking: 'A file.', call: write(tools) };
      const before = await spine.balance();
      const asked = upstream.asked.length;
      const { code, said, file } = await gemini('Greet tollgate in greeting.txt', model);
      expect(code, said).toBe(0);
      expect(file, said).toBe('hello tollgate\n');
      expect(said).toContain('It is done.');
      const turns = upstream.asked.slice(asked);
      expect(turns.length, said).toBe(2);
      for (const { reached } of turns)
        expect(reached.path).toMatch(wire === 'chat' ? /chat\/completions$/ : /^\/v1beta\/models\/.*alt=sse$/);
      const second = turns[1]!.reached.text;
      // What the provider wants back with the call comes back to it.
      expect(second).toContain(wire === 'chat' ? '"reasoning_content":"A file."' : `"thoughtSignature":"${SIGNATURE}"`);
      await spine.quiet();
      expect(before.available - (await spine.balance()).available).toBe(2n * COST);
    },
    RUN_MS,
  );

  test(
    'stops on an empty balance, and shows why',
    async () => {
      const { key } = await spine.tenant(`poor-${wire}`, '0.000001');
      const asked = upstream.asked.length;
      const { code, said } = await gemini('Hi', model, key);
      expect(code).not.toBe(0);
      expect(said).toContain('Insufficient balance');
      expect(upstream.asked.length).toBe(asked);
    },
    RUN_MS,
  );
});

const write = (tools: readonly OfferedTool[]) => ({
  id: 'call_1',
  name: tools.find(({ name }) => name === 'write_file')!.name,
  input: { file_path: 'greeting.txt', content: 'hello tollgate\n' },
});
