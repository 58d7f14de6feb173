import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentSpine, type AgentSpine, type ServedAgent } from '../../support/a2a-agent/index.ts';
import { createKeeper, type ServerProcess } from '../../support/server-process.ts';
import { installStranger } from '../../support/stranger.ts';
import { startScriptedModel, type ScriptedModel } from './scripted-model.ts';

/*
 * Claude Code and Codex as they are on npm, set up as docs/use/tools.md says, with an agent as their MCP server's tool.
 * Only their model is played: it asks for the tool, and repeats what the program shows it of the answer.
 */

const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let world: AgentSpine;
let served: ServedAgent;
let model: ScriptedModel;

beforeAll(async () => {
  world = await startAgentSpine();
  served = await world.serve({ version: 'both' }, { pricing: 'per_call = 0.02' });
  model = await startScriptedModel();
});
afterAll(async () => {
  try {
    expect(await world.spine.faults()).toEqual([]);
  } finally {
    await model.close();
    await world.close();
  }
});

interface Program {
  readonly script: string;
  readonly env: (home: string) => NodeJS.ProcessEnv;
  /** Of its settings, besides the MCP server. */
  readonly settings?: () => { readonly file: string; readonly text: string };
  /** Command lines: one that adds the MCP server, and one that lets the model work and prints what it says last. */
  readonly add: (url: string, key: string) => readonly string[];
  readonly work: (tools: readonly string[]) => readonly string[];
}

const CLAUDE_CODE: Program = {
  script: '@anthropic-ai/claude-code/cli-wrapper.cjs',
  env: () => ({
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'k',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
  add: (url, key) => ['mcp', 'add', '--transport', 'http', 'tollgate', url, '--header', `Authorization: Bearer ${key}`],
  work: (tools) => ['-p', 'Do it.', '--allowedTools', tools.map((tool) => `mcp__tollgate__${tool}`).join(',')],
};

const CODEX: Program = {
  script: '@openai/codex/bin/codex.js',
  env: (home) => ({ CODEX_HOME: home, MODEL_KEY: 'k' }),
  settings: () => ({
    file: 'config.toml',
    text: `model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "Scripted"
base_url = "${model.url}/v1"
env_key = "MODEL_KEY"
wire_api = "responses"
`,
  }),
  add: (url) => ['mcp', 'add', 'tollgate', '--url', url, '--bearer-token-env-var', 'KEY'],
  work: () => [
    'exec',
    '--skip-git-repo-check',
    '-c',
    'mcp_servers.tollgate.default_tools_approval_mode="approve"',
    'Do it.',
  ],
};

interface Session {
  readonly path: string;
  readonly key?: string;
  readonly tools: readonly string[];
}

describe.each([
  ['claude-code', CLAUDE_CODE],
  ['codex', CODEX],
] as const)('%s', (name, program) => {
  let folder: string;
  beforeAll(() => {
    folder = installStranger(name);
  }, INSTALL_MS);

  /** What the program prints on stdout. The model sees the answers of the tools as the program shows them. */
  async function work({ path, key = world.spine.key, tools }: Session): Promise<string> {
    const home = await mkdtemp(join(tmpdir(), `tollgate-${name}-`));
    const keeper = createKeeper([home]);
    const env = { PATH: process.env['PATH'], HOME: home, KEY: key, ...program.env(home) };
    const cwd = join(home, 'project');
    const run = async (args: readonly string[]): Promise<ServerProcess> => {
      const child = keeper.start({
        file: process.execPath,
        args: [join(folder, 'node_modules', program.script), ...args],
        cwd,
        env,
      });
      await child.exited;
      expect(child.exitCode, child.output()).toBe(0);
      return child;
    };
    try {
      await mkdir(cwd);
      const settings = program.settings?.();
      if (settings) await writeFile(join(home, settings.file), settings.text);
      await run(program.add(`${world.spine.origin}${path}`, key));
      const child = await run(program.work(tools));
      return child.stdout().trim();
    } finally {
      await keeper.close();
    }
  }
  const charged = async (act: () => Promise<void>): Promise<bigint> => {
    const before = await world.spine.balance();
    await act();
    await world.spine.quiet();
    return before.available - (await world.spine.balance()).available;
  };

  test(
    'finds an agent at the address of all services, asks it, and its answer is paid',
    async () => {
      model.follow(
        () => ({ name: 'find_tools', arguments: { query: 'fixture agent' } }),
        ([found]) => ({
          name: 'ask_agent',
          arguments: { agent: /[\w-]+\/agent\b/.exec(found!)?.[0] ?? found, message: 'echo good morning' },
        }),
      );
      const cost = await charged(async () => {
        expect(await work({ path: '/mcp', tools: ['find_tools', 'ask_agent'] })).toMatch(/^RESULT<.*good morning.*>$/s);
      });
      expect(cost).toBe(20_000n);
    },
    RUN_MS,
  );

  test(
    'answers what an agent asks, at the address of the agent, and each message is paid',
    async () => {
      model.follow(
        () => ({ name: 'send_message', arguments: { message: 'ask' } }),
        ([asked]) => ({
          name: 'send_message',
          arguments: { message: 'the red one', task_id: /"task_id":\s*"([^"]+)"/.exec(asked!)![1] },
        }),
      );
      const cost = await charged(async () => {
        expect(await work({ path: `/mcp/a2a/${served.service}`, tools: ['send_message'] })).toMatch(
          /^RESULT<.*answered: the red one.*>$/s,
        );
      });
      expect(model.asked.join()).toMatch(/Which one\?.*input-required/s);
      expect(cost).toBe(40_000n);
    },
    RUN_MS,
  );

  test(
    'reads why an agent failed, which is free',
    async () => {
      model.follow(() => ({ name: 'send_message', arguments: { message: 'fail' } }));
      const cost = await charged(async () => {
        expect(await work({ path: `/mcp/a2a/${served.service}`, tools: ['send_message'] })).toMatch(
          /^RESULT<.*it did not work.*>$/s,
        );
      });
      expect(cost).toBe(0n);
    },
    RUN_MS,
  );

  test(
    'reads that there is no money',
    async () => {
      const { key } = await world.spine.tenant(`poor-${name}`, '0.001');
      model.follow(() => ({ name: 'send_message', arguments: { message: 'echo hi' } }));
      const said = await work({ path: `/mcp/a2a/${served.service}`, key, tools: ['send_message'] });
      expect(said).toMatch(/^RESULT<.*Insufficient balance for estimated cost: 0\.02 USDC.*>$/s);
    },
    RUN_MS,
  );
});
