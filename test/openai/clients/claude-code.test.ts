import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentBlock, startAgent, type Agent } from '../../support/a2a-agent/index.ts';
import { createKeeper } from '../../support/server-process.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';
import { CONTEXT_LENGTH, COST, SIGNATURE, startPlayedModel, type PlayedModel } from './support/played-model.ts';

// Claude Code as it is on npm, set up as docs/clients/claude-code.md says. Only the model behind the gateway is played.

const TRANSLATED = 'acme/coder';
const NATIVE = 'acme/native';
const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let upstream: PlayedModel;
const AGENT = 'fixture/agent';
let agent: Agent;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  folder = installStranger('claude-code');
  upstream = await startPlayedModel();
  agent = await startAgent({ version: 'both' });
  const model = { provider: 'Acme', url: upstream.url, contextLength: CONTEXT_LENGTH };
  const blocks =
    modelBlock({ ...model, name: TRANSLATED }) + modelBlock({ ...model, name: NATIVE, params: 'wires = ["messages"]' });
  const offer = agentBlock({ name: AGENT, endpoint: agent.url, pricing: 'per_call = 0.003' });
  spine = await startSpine({ toml: UNHURRIED + blocks + offer });
}, INSTALL_MS);
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
    await agent.close();
  }
});

interface Run {
  readonly code: number | null;
  readonly said: string;
  readonly file: string;
}

/** One run of Claude Code with a prompt, in a folder with one file. */
async function claude(prompt: string, { key = spine.key, model = TRANSLATED } = {}): Promise<Run> {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-claude-'));
  const keeper = createKeeper([home]);
  const cwd = join(home, 'project');
  await mkdir(cwd);
  const path = join(cwd, 'greeting.txt');
  await writeFile(path, 'hello world\n');
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [
        join(folder, 'node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs'),
        '-p',
        prompt,
        '--allowedTools',
        'Read,Edit',
      ],
      cwd,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        ANTHROPIC_BASE_URL: `${spine.origin}/api`,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_API_KEY: '',
        ANTHROPIC_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
      },
    });
    await child.exited;
    return { code: child.exitCode, said: child.output(), file: await readFile(path, 'utf8') };
  } finally {
    await keeper.close();
  }
}

describe.each([
  ['chat', TRANSLATED, '/v1/chat/completions'],
  ['messages', NATIVE, '/v1/messages'],
] as const)('at a provider that speaks %s', (wire, model, path) => {
  test(
    'edits a file by tools in three turns, and each turn is billed',
    async () => {
      upstream.answer = ({ reached, tools, results }) => {
        if (tools.length === 0) return { text: 'title' };
        const result = results.at(-1);
        const file = `${/working directory: ([^\s"\\]+)/i.exec(reached.text)![1]}/greeting.txt`;
        if (result === undefined)
          return {
            thinking: 'I read it first.',
            call: { id: 'toolu_read', name: 'Read', input: { file_path: file } },
          };
        if (result.includes('hello world'))
          return {
            text: 'Now I change it.',
            call: {
              id: 'toolu_edit',
              name: 'Edit',
              input: { file_path: file, old_string: 'hello world', new_string: 'hello tollgate' },
            },
          };
        return { text: 'It is done.' };
      };
      const before = await spine.balance();
      const asked = upstream.asked.length;
      const { code, said, file } = await claude('Greet tollgate in greeting.txt', { model });
      expect(code, said).toBe(0);
      expect(file).toBe('hello tollgate\n');
      expect(said).toContain('It is done.');
      const turns = upstream.asked.slice(asked);
      expect(turns.length).toBeGreaterThanOrEqual(3);
      expect(turns.filter(({ reached }) => new URL(reached.path, upstream.url).pathname !== path)).toEqual([]);
      expect(turns.at(-1)!.reached.body['messages']).toContainEqual(
        expect.objectContaining(
          wire === 'chat'
            ? { role: 'assistant', reasoning_content: 'I read it first.' }
            : {
                role: 'assistant',
                content: expect.arrayContaining([
                  { type: 'thinking', thinking: 'I read it first.', signature: SIGNATURE },
                ]) as unknown,
              },
        ),
      );
      await spine.quiet();
      expect(before.available - (await spine.balance()).available).toBe(BigInt(turns.length) * COST);
    },
    RUN_MS,
  );

  test(
    'makes its conversation shorter where a prompt is too long for the model',
    async () => {
      let refused = false;
      upstream.answer = ({ reached }) => {
        if (refused && /summar/i.test(reached.text)) return { text: '<summary>We greet.</summary>' };
        if (refused) return { text: 'Short now.' };
        refused = true;
        return { tooLong: 209_000 };
      };
      const before = upstream.asked.length;
      const { said } = await claude('Say something', { model });
      expect(refused).toBe(true);
      expect(said, said).not.toContain('Provider Acme');
      expect(upstream.asked.length - before).toBeLessThan(8);
      expect(said).toMatch(/Prompt is too long|Short now/);
    },
    RUN_MS,
  );
});

test(
  'shows that there is no money, after one request',
  async () => {
    const { key } = await spine.tenant('poor-claude', '0.000001');
    const before = upstream.asked.length;
    const { said } = await claude('Hi', { key });
    expect(said).toMatch(/402 .*Insufficient balance/s);
    expect(upstream.asked.length).toBe(before);
  },
  RUN_MS,
);

test(
  'talks to an agent as its model, and each answer is billed as one of the agent',
  async () => {
    const before = await spine.balance();
    const { code, said } = await claude('Good morning', { model: `a2a/${AGENT}` });
    expect(code, said).toBe(0);
    // The agent says what it was asked, which Claude Code puts reminders of its own before.
    expect(said).toContain('system-reminder');
    await spine.quiet();
    expect(before.available - (await spine.balance()).available).toBe(3_000n);
  },
  RUN_MS,
);
