import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { ScriptedModel } from '../../../mcp/clients/scripted-model.ts';
import { LANGUAGES } from '../../../openai/clients/support/languages.ts';
import { installStranger } from '../../../support/stranger.ts';
import type { Desk } from './desk.ts';

/** Where a program works. */
export interface Workplace {
  readonly desk: Desk;
  /** The MCP endpoint of one service of the gateway, with the tool `test_simple_text`. */
  readonly url: string;
  /** The model of programs that call tools by one. */
  readonly model: ScriptedModel;
  /** By how many seconds the clock of the gateway is ahead. */
  readonly aheadS: () => number;
}

/** A program of somebody else that signs in by the browser. */
export interface SignedInProgram {
  /** Calls the tool, and resolves with what it says. Rejects with what the program wrote if it could not. */
  call(): Promise<string>;
  close(): Promise<void>;
}

export type StartProgram = (place: Workplace) => Promise<SignedInProgram>;

const CALL_MS = 60_000;
const TOOL = 'test_simple_text';
const nothing = async (): Promise<void> => {};

/** Runs a program to its end, without a terminal; what it wrote on stdout. Rejects with all it wrote if it failed. */
async function run(file: string, args: readonly string[], { desk }: Workplace, env: NodeJS.ProcessEnv = {}) {
  // A group of its own, because some programs start another one that would outlive them.
  const options = { cwd: desk.home, env: { ...desk.env, ...env }, detached: true } as const;
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), CALL_MS);
  const closed = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await closed) as [number | null];
  clearTimeout(timer);
  if (code === 0) return stdout;
  throw new Error(`${file} ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`);
}

/** mcp-remote, through which assistants that only know commands connect. */
export const startMcpRemote: StartProgram = async ({ desk, url }) => {
  const program = createRequire(join(installStranger('mcp-remote'), 'package.json')).resolve(
    'mcp-remote/dist/proxy.js',
  );
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, url],
    env: desk.env,
    stderr: 'ignore',
  });
  let connected: Promise<void> | null = null;
  return {
    async call() {
      await (connected ??= client.connect(transport));
      const { content } = await client.callTool({ name: TOOL, arguments: {} }, undefined, { timeout: CALL_MS });
      return (content as readonly { readonly text: string }[])[0]!.text;
    },
    close: () => client.close(),
  };
};

/** The command line of the inspector. */
export const startInspector: StartProgram = async (place) => {
  const bin = join(
    dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')),
    'clients/launcher/build/index.js',
  );
  const env = { MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' };
  const callback = ['--callback-url', 'http://127.0.0.1:0/oauth/callback'];
  const args = [bin, '--cli', place.url, '--transport', 'http', '--method', 'tools/call', '--tool-name', TOOL];
  return { call: () => run(process.execPath, [...args, ...callback], place, env), close: nothing };
};

/** Asks the model of a program to call the tool. */
const askForTool = ({ model }: Workplace) => model.follow(() => ({ name: TOOL, arguments: {} }));

/** Claude Code. It signs in only at a terminal, which `script` plays. */
export const startClaudeCode: StartProgram = async (place) => {
  const folder = installStranger('claude-code');
  const args = [join(folder, 'node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs')];
  const env = {
    ANTHROPIC_BASE_URL: place.model.url,
    ANTHROPIC_API_KEY: 'k',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  };
  await run(process.execPath, [...args, 'mcp', 'add', '--transport', 'http', 'tollgate', place.url], place, env);
  const login = [process.execPath, ...args, 'mcp', 'login', 'tollgate'].map((each) => `'${each}'`).join(' ');
  await run('script', ['-qefc', login, '/dev/null'], place, env);
  return {
    async call() {
      askForTool(place);
      const work = ['-p', 'Do it.', '--allowedTools', `mcp__tollgate__${TOOL}`];
      return run(process.execPath, [...args, ...work], place, env);
    },
    close: nothing,
  };
};

/** Codex. */
export const startCodex: StartProgram = async (place) => {
  const args = [join(installStranger('codex'), 'node_modules/@openai/codex/bin/codex.js')];
  const home = join(place.desk.home, 'codex');
  const env = { CODEX_HOME: home, MODEL_KEY: 'k' };
  await mkdir(home);
  const settings = `model = "scripted"
model_provider = "scripted"
mcp_oauth_credentials_store = "file"
[model_providers.scripted]
name = "Scripted"
base_url = "${place.model.url}/v1"
env_key = "MODEL_KEY"
wire_api = "responses"
`;
  await writeFile(join(home, 'config.toml'), settings);
  // It signs in at once when it finds that the server wants it.
  await run(process.execPath, [...args, 'mcp', 'add', 'tollgate', '--url', place.url], place, env);
  return {
    async call() {
      askForTool(place);
      const allowed = ['-c', 'mcp_servers.tollgate.default_tools_approval_mode="approve"'];
      const work = ['exec', '--skip-git-repo-check', ...allowed, 'Do it.'];
      return run(process.execPath, [...args, ...work], place, env);
    },
    close: nothing,
  };
};

/**
 * A program in another language: it calls for each line of its input, which says by how much its clock shall be ahead,
 * and answers with a line of JSON.
 */
const startInLanguage =
  (language: string, program: string): StartProgram =>
  async ({ desk, url, aheadS }) => {
    const { file, args, env } = await LANGUAGES[language]!().build(program);
    const child = spawn(file, args, {
      env: { ...env, ...desk.env, MCP_URL: url },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      async call() {
        child.stdin.write(`${aheadS()}\n`);
        const { value } = await lines.next();
        const said = JSON.parse(value!) as { readonly text?: string; readonly error?: string };
        if (said.error !== undefined) throw new Error(said.error);
        return said.text!;
      },
      async close() {
        child.stdin.end();
        child.kill();
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      },
    };
  };

/** `Client(auth="oauth")` of Python. */
export const startFastMcp = startInLanguage('python', 'fastmcp_oauth.py');

/** `client.NewOAuthStreamableHttpClient` of Go. */
export const startMcpGo = startInLanguage('go', 'mcp-go');
