import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { makePlace, type Place } from '../../program/cli/tollgate.ts';
import { snippetsOf } from '../../docs/snippets.ts';
import { createKeeper } from '../../support/server-process.ts';
import { installStranger, type Stranger } from '../../support/stranger.ts';

// Clients as they are on npm, set up by nothing but `tollgate connect --write`, with the demo's model.

const RUN_MS = 300_000;
const SAGE = 'I am the demo model behind this gateway';
let place: Place;
let gateway: Record<string, string>;
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['start']);
  gateway = await place.read('dev.json');
}, RUN_MS);
afterAll(async () => {
  try {
    expect(await place.run(['audit'])).toMatchObject({ code: 0 });
  } finally {
    await place.clear();
  }
});

const spent = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${gateway['api_key']}` };
  const response = await fetch(`${gateway['base_url']}/api/v1/session/balance`, { headers });
  return 10_000_000 - ((await response.json()) as { balance_micro_usdc: number }).balance_micro_usdc;
};

/** A home that has what the command writes, and nothing else. */
async function connected(name: string, ...more: readonly string[]): Promise<string> {
  const home = join(place.dir, `${name}-${more.length}`);
  await mkdir(join(home, 'project'), { recursive: true });
  const { code, output } = await place.run(['connect', name, '--write', '--yes', ...more], { HOME: home });
  expect(code, output).toBe(0);
  return home;
}

const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  CLINE_NO_AUTO_UPDATE: '1',
};

/** Runs a program in a home, and resolves with what it prints. */
async function run(home: string, file: string, args: readonly string[]): Promise<string> {
  const keeper = createKeeper([]);
  try {
    const env = { PATH: process.env['PATH'], HOME: home, ...QUIET };
    const child = keeper.start({ file, args, cwd: join(home, 'project'), env });
    await child.exited;
    expect(child.exitCode, child.output()).toBe(0);
    return child.output();
  } finally {
    await keeper.close();
  }
}

const script = (name: Stranger, path: string) => join(installStranger(name), 'node_modules', path);
const platform = `${process.platform}-${process.arch}`;
/** The program and the arguments before ours. npm's own link needs a script of the package, which does not run. */
const PROGRAMS = {
  'claude-code': () => [process.execPath, script('claude-code', '@anthropic-ai/claude-code/cli-wrapper.cjs')],
  codex: () => [process.execPath, script('codex', '@openai/codex/bin/codex.js')],
  opencode: () => [script('opencode', `opencode-${platform}/bin/opencode`)],
  cline: () => [script('cline', `@cline/cli-${platform}/bin/cline`)],
} as const;

const SAY = {
  'claude-code': ['-p', 'Say hello'],
  codex: ['exec', '--skip-git-repo-check', 'Say hello'],
  opencode: ['run', 'Say hello'],
  cline: ['Say hello'],
} as const;

test.each(['claude-code', 'codex', 'opencode', 'cline'] as const)(
  '%s talks to the model that was written, and the call is charged',
  async (name) => {
    const before = await spent();
    const home = await connected(name);
    try {
      const [file, ...first] = PROGRAMS[name]();
      expect(await run(home, file!, [...first, ...SAY[name]])).toContain(SAGE);
      expect(await spent()).toBeGreaterThan(before);
    } finally {
      endDaemons(home);
    }
  },
  RUN_MS,
);

const LISTED = {
  'claude-code': /tollgate: http:\S+\/mcp .*Connected/,
  codex: /tollgate +http:\S+\/mcp .*enabled +Bearer token/,
  opencode: /tollgate.*connected/,
} as const;

test.each(['claude-code', 'codex', 'opencode'] as const)(
  '%s has the gateway as its MCP server',
  async (name) => {
    const home = await connected(name, '--mcp');
    const [file, ...first] = PROGRAMS[name]();
    expect(await run(home, file!, [...first, 'mcp', 'list'])).toMatch(LISTED[name]);
  },
  RUN_MS,
);

test(
  'mcporter finds the gateway in what was written for Cursor',
  async () => {
    const home = await connected('cursor', '--mcp');
    const program = script('mcporter', 'mcporter/dist/cli.js');
    expect(await run(home, process.execPath, [program, 'list'])).toMatch(/tollgate \(\d+ tools/);
  },
  RUN_MS,
);

test(
  'the program that was written for Claude Desktop lists tools and calls one',
  async () => {
    const home = await connected('claude-desktop');
    const path = process.platform === 'darwin' ? 'Library/Application Support' : '.config';
    const text = await readFile(join(home, path, 'Claude/claude_desktop_config.json'), 'utf8');
    const { tollgate } = (
      JSON.parse(text) as { mcpServers: { tollgate: { args: string[]; env: Record<string, string> } } }
    ).mcpServers;
    // What npx would fetch is installed here.
    const program = createRequire(join(installStranger('mcp-remote'), 'package.json')).resolve(
      'mcp-remote/dist/proxy.js',
    );
    expect(tollgate.args.slice(0, 2)).toEqual(['-y', 'mcp-remote']);
    const client = new Client({ name: 'test', version: '1' });
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, ...tollgate.env };
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [program, ...tollgate.args.slice(2)],
        env,
        stderr: 'ignore',
      }),
    );
    try {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('demo_tools__roll_dice');
      const before = await spent();
      await client.callTool({ name: 'demo_tools__roll_dice', arguments: { dice: '2d6' } });
      expect(await spent()).toBe(before + 1_000);
    } finally {
      await client.close();
    }
  },
  RUN_MS,
);

test(
  'the program of the page of LangChain runs with the .env that was written',
  async () => {
    const home = await connected('langchain');
    const folder = installStranger('langchain');
    // The command writes where it runs.
    const env = join(place.dir, '.env');
    const { text } = snippetsOf('docs/clients/langchain.md').find(({ language }) => language === 'js')!;
    await symlink(join(folder, 'node_modules'), join(home, 'project/node_modules'));
    const args = [`--env-file=${env}`, '--input-type=module', '--eval', text];
    expect(await run(home, process.execPath, args)).toContain('1, 2, 3.');
  },
  RUN_MS,
);

test(
  'the schema of LibreChat accepts the file that was written for it',
  async () => {
    await connected('librechat');
    const { configSchema } = createRequire(join(installStranger('librechat'), 'package.json'))(
      'librechat-data-provider',
    ) as { configSchema: { parse(value: unknown): { endpoints: { custom: readonly object[] } } } };
    const file = parseYaml(await readFile(join(place.dir, 'librechat.yaml'), 'utf8')) as unknown;
    expect(configSchema.parse(file).endpoints.custom).toMatchObject([{ name: 'tollgate', models: { fetch: true } }]);
  },
  RUN_MS,
);

/** Cline leaves a process behind that serves its next runs. */
function endDaemons(home: string): void {
  for (const row of execFileSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' }).split('\n'))
    if (row.includes('--cline-hub-daemon') && row.includes(home)) process.kill(Number.parseInt(row, 10), 'SIGKILL');
}
