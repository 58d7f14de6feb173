import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CODING_AGENTS } from '../../../../src/program/cli/connect/coding-agents.ts';
import { withSettings } from '../../../../src/program/cli/connect/formats.ts';
import { installStranger } from '../../../support/stranger.ts';
import { errandOf, type Hands } from './afternoon-model.ts';
import type { KeyHelper } from './key-command.ts';

/** Where a client works. */
export interface Desk {
  readonly home: string;
  readonly project: string;
  readonly origin: string;
  readonly model: string;
  readonly helper: KeyHelper;
}

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A coding agent of which each turn is a process of its own, which goes on with the session of the last. */
export interface CodingClient {
  readonly wire: string;
  readonly hands: (project: string) => Hands;
  prepare(desk: Desk): Promise<void>;
  turn(desk: Desk, prompt: string, isFirst: boolean): Promise<Command>;
  /** It asks for another key in the middle of a turn, when the one that it has is refused. */
  readonly renewsKey: boolean;
  /** What it may say of a turn that was cancelled. */
  readonly ofCancelled?: RegExp;
}

/** Clients leave out a file that they have read before, so each turn has its own. */
export const notesOf = (turn: number): string => `notes-${turn}.txt`;
export const nameOf = (turn: number): string => `turn-${turn}.txt`;
export const textOf = (turn: number): string => `It is turn ${turn}.\n`;
export const CONTEXT = 131_072;

const claude: CodingClient = {
  wire: 'messages',
  renewsKey: true,
  ofCancelled: /^Execution error$/m,
  hands: (project) => ({
    shortens: /detailed summary of/,
    shortened: (text) => `<analysis>All of it.</analysis>\n<summary>${text}</summary>`,
    calls: (verb, turn, { tools }) => {
      const id = `toolu_${turn}`;
      const agent = tools.find(({ name }) => name === 'Agent' || name === 'Task')?.name ?? 'Agent';
      const input = { description: 'An errand', prompt: errandOf(turn), subagent_type: 'general-purpose' };
      return {
        read: [() => ({ id, name: 'Read', input: { file_path: join(project, notesOf(turn)) } })],
        write: [
          () => ({ id, name: 'Write', input: { file_path: join(project, nameOf(turn)), content: textOf(turn) } }),
        ],
        errand: [() => ({ id, name: agent, input })],
      }[verb];
    },
  }),
  async prepare({ home, helper: { file, args } }) {
    await mkdir(join(home, '.claude'));
    const apiKeyHelper = [file, ...args].map((each) => `'${each}'`).join(' ');
    await writeFile(join(home, '.claude/settings.json'), JSON.stringify({ apiKeyHelper }));
  },
  turn: async ({ home, origin, model }, prompt, isFirst) => ({
    // The wrapper of the package passes no signals on.
    file: join(
      installStranger('claude-code'),
      `node_modules/@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
    ),
    args: ['-p', prompt, ...(isFirst ? [] : ['--continue']), '--allowedTools', 'Read,Write,Agent,Task'],
    env: {
      HOME: home,
      ANTHROPIC_BASE_URL: `${origin}/api`,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: `${CONTEXT}`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    },
  }),
};

const agentId = (results: readonly string[]): string =>
  /"agent_id\\*":\\*"([^"\\]+)/.exec(results.join(''))?.[1] ?? 'none';

const codexProgram = () => join(installStranger('codex'), 'node_modules/@openai/codex/bin/codex.js');

/** A model that Codex itself describes as one that runs commands by a function. */
function describedByCodex(home: string): object {
  const listed = execFileSync(process.execPath, [codexProgram(), 'debug', 'models'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: home, CODEX_HOME: home },
    maxBuffer: 16 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { models } = JSON.parse(listed) as { models: readonly { slug: string }[] };
  return models.find(({ slug }) => slug === 'gpt-5.5')!;
}

const codex: CodingClient = {
  wire: 'responses',
  renewsKey: true,
  hands: () => ({
    shortens: /CONTEXT CHECKPOINT COMPACTION/,
    shortened: (text) => text,
    calls: (verb, turn, { tools }) => {
      const call = (name: string, input: Record<string, unknown>) => ({ id: `call_${turn}_${name}`, name, input });
      const ofAgents = { namespace: 'multi_agent_v1' };
      const shell = (command: string) => () => {
        const { name, parameters } = tools.find((tool) => /^(?:shell|exec_command|shell_command)$/.test(tool.name))!;
        return call(name, 'cmd' in parameters!.properties ? { cmd: command } : { command });
      };
      return {
        read: [shell(`cat ${notesOf(turn)}`)],
        write: [shell(`echo 'It is turn ${turn}.' > ${nameOf(turn)}`)],
        errand: [
          () => ({ ...call('spawn_agent', { message: errandOf(turn) }), ...ofAgents }),
          (results: readonly string[]) => ({
            ...call('wait_agent', { targets: [agentId(results)], timeout_ms: 60_000 }),
            ...ofAgents,
          }),
        ],
      }[verb];
    },
  }),
  async prepare({ home, origin, model, helper: { file, args } }) {
    const catalog = join(home, 'models.json');
    const known = { ...describedByCodex(home), slug: model, multi_agent_version: 'v1', supports_search_tool: false };
    await writeFile(catalog, JSON.stringify({ models: [known] }));
    await writeFile(
      join(home, 'config.toml'),
      `model = "${model}"
model_provider = "tollgate"
model_catalog_json = "${catalog}"
model_context_window = ${CONTEXT}
model_auto_compact_token_limit = 70000
[model_providers.tollgate]
name = "tollgate"
base_url = "${origin}/api/v1"
wire_api = "responses"
[model_providers.tollgate.auth]
command = "${file}"
args = ${JSON.stringify(args)}
`,
    );
  },
  turn: async ({ home }, prompt, isFirst) => ({
    file: process.execPath,
    args: [
      codexProgram(),
      'exec',
      ...(isFirst ? [] : ['resume', '--last']),
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      prompt,
    ],
    env: { HOME: home, CODEX_HOME: home },
  }),
};

const gemini: CodingClient = {
  wire: 'gemini',
  // Its key is a variable of its environment: a wrapper gives each process a good one.
  renewsKey: false,
  hands: () => ({
    shortens: /state_snapshot/,
    shortened: (text) => `<state_snapshot>${text}</state_snapshot>`,
    calls: (verb, turn) => {
      const id = `call_${turn}`;
      return {
        read: [() => ({ id, name: 'read_file', input: { file_path: notesOf(turn) } })],
        write: [() => ({ id, name: 'write_file', input: { file_path: nameOf(turn), content: textOf(turn) } })],
        errand: [() => ({ id, name: 'invoke_agent', input: { agent_name: 'generalist', prompt: errandOf(turn) } })],
      }[verb];
    },
  }),
  async prepare({ home, origin: base, model }) {
    await mkdir(join(home, '.gemini'));
    const connection = { base, key: '', balance: null, model, models: [] };
    const machine = { home, cwd: home, env: {}, platform: process.platform };
    const { files } = CODING_AGENTS.find(({ name }) => name === 'gemini-cli')!.models!(connection, machine);
    const { path, settings } = files.find(({ format }) => format === 'json')!;
    const usual = {
      privacy: { usageStatisticsEnabled: false },
      general: { disableAutoUpdate: true, disableUpdateNag: true },
      model: { compressionThreshold: 0.06 },
    };
    await writeFile(path, JSON.stringify(withSettings(usual, settings)));
  },
  turn: async ({ home, origin, model, helper }, prompt, isFirst) => ({
    file: process.execPath,
    args: [
      join(installStranger('gemini-cli'), 'node_modules/@google/gemini-cli/bundle/gemini.js'),
      '--skip-trust',
      '--yolo',
      ...(isFirst ? [] : ['--resume', 'latest']),
      '--prompt',
      prompt,
    ],
    env: {
      HOME: home,
      NO_COLOR: '1',
      // The first process would keep signals from the second.
      GEMINI_CLI_NO_RELAUNCH: 'true',
      NODE_COMPILE_CACHE: join(tmpdir(), 'tollgate-gemini-cli-compiled'),
      GEMINI_API_KEY: await helper.token(),
      // Access tokens are taken in Authorization alone.
      GEMINI_API_KEY_AUTH_MECHANISM: 'bearer',
      GOOGLE_GEMINI_BASE_URL: `${origin}/api`,
      GEMINI_MODEL: model,
    },
  }),
};

export const CODING_CLIENTS = { 'Claude Code': claude, Codex: codex, 'Gemini CLI': gemini } as const;
