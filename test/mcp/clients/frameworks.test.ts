import { readFile, mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentSpine, type AgentSpine, type ServedAgent } from '../../support/a2a-agent/index.ts';
import { createKeeper } from '../../support/server-process.ts';
import { MODEL } from '../../support/spine.ts';
import { installStranger, type Stranger } from '../../support/stranger.ts';

// Frameworks and command lines that are too large for everybody's `npm test`, as they are on npm.

const RUN_MS = 300_000;
let world: AgentSpine;
let served: ServedAgent;
let home: string;
beforeAll(async () => {
  world = await startAgentSpine('[upstream]\ncooldown_ms = 0');
  served = await world.serve({ version: 'both' }, { pricing: 'per_call = 0.02' });
  home = await mkdtemp(join(tmpdir(), 'tollgate-frameworks-'));
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
});

const environment = () => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  ORIGIN: world.spine.origin,
  KEY: world.spine.key,
  MODEL,
  AGENT: served.service,
});

/** Runs Node in the folder of what was installed; what it prints. */
async function runNode(folder: string, args: readonly string[]): Promise<string> {
  const keeper = createKeeper([]);
  try {
    const child = keeper.start({ file: process.execPath, args, cwd: folder, env: environment() });
    await child.exited;
    expect(child.exitCode, child.output()).toBe(0);
    return child.stdout();
  } finally {
    await keeper.close();
  }
}

/** Runs a script of `frameworks/` as if it stood beside what was installed; the JSON that it prints. */
async function runScript(name: Stranger): Promise<unknown> {
  const script = await readFile(new URL(`frameworks/${name}.mjs`, import.meta.url), 'utf8');
  return JSON.parse(await runNode(installStranger(name), ['--input-type=module', '--eval', script]));
}

async function expectAgentPaid(act: () => Promise<void>): Promise<void> {
  const before = (await world.spine.balance()).available;
  await act();
  expect((await world.spine.balance()).available).toBe(before - 20_000n);
}

const CHAT = {
  text: 'the toll is paid ',
  outputTokens: 4,
  streamed: 'the toll is paid für jede ',
  toolCall: 'weather',
  refused: expect.stringContaining('Provider Test refused the request') as string,
};

test('LangChain chats, streams, and calls tools', { timeout: RUN_MS }, async () => {
  expect(await runScript('langchain')).toMatchObject(CHAT);
});

test("OpenAI's Agents SDK chats, streams, calls tools, and asks an agent by MCP", { timeout: RUN_MS }, async () => {
  expect(await runScript('openai-agents')).toMatchObject({
    ...CHAT,
    tools: expect.arrayContaining(['ask_agent']) as string[],
    answer: [{ type: 'text', text: 'good morning' }],
  });
});

test('mcporter asks an agent, and it is paid', { timeout: RUN_MS }, async () => {
  const folder = installStranger('mcporter');
  const program = join(folder, 'node_modules/mcporter/dist/cli.js');
  await expectAgentPaid(async () => {
    const where = [
      `--http-url`,
      `${world.spine.origin}/mcp`,
      '--allow-http',
      '--header',
      `Authorization=Bearer ${world.spine.key}`,
    ];
    const said = await runNode(folder, [
      program,
      'call',
      ...where,
      'ask_agent',
      `agent=${served.service}`,
      'message=echo good morning',
    ]);
    expect(said).toContain('good morning');
  });
});

test('mcp-remote brings programs that only know commands to the gateway', { timeout: RUN_MS }, async () => {
  const program = createRequire(join(installStranger('mcp-remote'), 'package.json')).resolve(
    'mcp-remote/dist/proxy.js',
  );
  const args = [program, `${world.spine.origin}/mcp`, '--header', 'Authorization: Bearer ${KEY}'];
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, env: environment(), stderr: 'ignore' }),
  );
  try {
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('ask_agent');
    await expectAgentPaid(async () => {
      const result = await client.callTool({
        name: 'ask_agent',
        arguments: { agent: served.service, message: 'echo good morning' },
      });
      expect(result).toMatchObject({ content: [{ type: 'text', text: 'good morning' }] });
    });
  } finally {
    await client.close();
  }
});
