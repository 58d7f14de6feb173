import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentBlock, startAgent, type Agent } from '../../support/a2a-agent/index.ts';
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

// Claude Code as it is on npm, set up as docs/messages.md says. Only the model behind the gateway is played.

const MODEL = 'acme/coder';
const INSTALL_MS = 300_000;
const RUN_MS = 120_000;
let upstream: TranscriptUpstream;
const AGENT = 'fixture/agent';
let agent: Agent;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  folder = installStranger('claude-code');
  upstream = await startTranscripts();
  agent = await startAgent({ version: 'both' });
  const block = modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, contextLength: 200_000 });
  const offer = agentBlock({ name: AGENT, endpoint: agent.url, pricing: 'per_call = 0.003' });
  spine = await startSpine({ toml: UNHURRIED + block + offer });
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
async function claude(prompt: string, { key = spine.key, model = MODEL } = {}): Promise<Run> {
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

/** The last result of a tool in a chat request. */
const lastResult = ({ messages }: Record<string, unknown>): string | undefined =>
  (messages as { role: string; content: string }[]).findLast(({ role }) => role === 'tool')?.content;

test(
  'edits a file by tools in three turns, and each turn is billed',
  async () => {
    upstream.answer = (body) => {
      const result = lastResult(body);
      if (body['tools'] === undefined || (body['tools'] as unknown[]).length === 0) return { chunks: words('title') };
      const file = `${/working directory: ([^\s"\\]+)/i.exec(JSON.stringify(body))![1]}/greeting.txt`;
      if (result === undefined)
        return {
          chunks: [
            chunk({ reasoning_content: 'I read it first.' }),
            call(0, { id: 'read_1', name: 'Read', args: JSON.stringify({ file_path: file }) }),
            chunk({}, 'tool_calls'),
            usage(),
          ],
        };
      if (result.includes('hello world'))
        return {
          chunks: [
            chunk({ content: 'Now I change it.' }),
            call(0, {
              id: 'edit_1',
              name: 'Edit',
              args: JSON.stringify({ file_path: file, old_string: 'hello world', new_string: 'hello tollgate' }),
            }),
            chunk({}, 'tool_calls'),
            usage(),
          ],
        };
      return { chunks: words('It is ', 'done.') };
    };
    const before = await spine.balance();
    const asked = upstream.asked.length;
    const { code, said, file } = await claude('Greet tollgate in greeting.txt');
    expect(code, said).toBe(0);
    expect(file).toBe('hello tollgate\n');
    expect(said).toContain('It is done.');
    expect(upstream.asked.at(-1)!['messages']).toContainEqual(
      expect.objectContaining({ role: 'assistant', reasoning_content: 'I read it first.' }),
    );
    await spine.quiet();
    const turns = upstream.asked.length - asked;
    expect(turns).toBeGreaterThanOrEqual(3);
    // Each turn has the same use: 20 + 2 × 9 micro-USD.
    expect(before.available - (await spine.balance()).available).toBe(BigInt(turns * 38));
  },
  RUN_MS,
);

test(
  'makes its conversation shorter where a prompt is too long for the model',
  async () => {
    let refused = false;
    upstream.answer = ({ messages }) => {
      const asked = JSON.stringify(messages);
      if (/summar/i.test(asked) && refused) return { chunks: words('<summary>We greet.</summary>') };
      if (refused) return { chunks: words('Short now.') };
      refused = true;
      const message =
        "This model's maximum context length is 200000 tokens. However, you requested 210000 tokens (209000 in the messages, 1000 in the completion).";
      return {
        status: 400,
        body: { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } },
      };
    };
    const before = upstream.asked.length;
    const { said } = await claude('Say something');
    expect(refused).toBe(true);
    expect(said, said).not.toContain('Provider Acme');
    expect(upstream.asked.length - before).toBeLessThan(8);
    expect(said).toMatch(/Prompt is too long|Short now/);
  },
  RUN_MS,
);

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
