import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { CLIENTS, connectClient } from '../../../src/program/cli/connect/run.ts';
import { ROOT } from '../../architecture/source.ts';
import { makePlace, type Place } from './tollgate.ts';

// What `connect` writes into the files of other programs is shown first, agreed to, and can be taken back.

let place: Place;
let key: string;
let base: string;
let home: string;
let project: string;
let count = 0;
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['start']);
  ({ base_url: base, api_key: key } = (await place.read('dev.json')) as { base_url: string; api_key: string });
});
beforeEach(async () => {
  home = join(place.dir, `home-${(count += 1)}`);
  project = place.dir;
  await mkdir(home);
});
afterAll(() => place.clear());

async function put(path: string, text: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}
const connect = (...args: readonly string[]) => place.run(['connect', ...args], { HOME: home, XDG_STATE_HOME: '' });
async function wrote(...args: readonly string[]) {
  const { code, output } = await connect(...args, '--write', '--yes');
  expect(code, output).toBe(0);
  return output;
}
async function undid(...args: readonly string[]) {
  const { code, output } = await connect(...args, '--undo');
  expect(code, output).toBe(0);
  return output;
}

const CLAUDE = `{
\t// mine
\t"env": { "EDITOR": "vi", "ANTHROPIC_MODEL": "claude-old" } // kept
}
`;
const CODEX = `# mine
model = "gpt-old" # before

[model_providers.tollgate]
env_key = "OLD_KEY"
`;

test('without a terminal it shows the change of a file for all projects, refuses it, and names --yes', async () => {
  const path = await put(join(home, '.claude/settings.json'), CLAUDE);
  const { code, output } = await connect('claude-code', '--write');
  expect(code).toBe(1);
  expect(output).toContain(`${path} gets:`);
  expect(output).toMatch(
    /holds for every project of Claude Code, .* Nothing was written\.\nTo write it .* --write --yes/,
  );
  expect(await readFile(path, 'utf8')).toBe(CLAUDE);
});

test.each([
  ['no', false],
  ['yes', true],
])('on a terminal it asks after it has shown the change: %s', async (_answer, agreed) => {
  const path = await put(join(home, '.claude/settings.json'), CLAUDE);
  vi.stubEnv('HOME', home);
  vi.stubEnv('XDG_STATE_HOME', '');
  let printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((printed += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const asked: string[] = [];
  const ask = async (question: string) => {
    expect(printed).toContain('"ANTHROPIC_MODEL": "demo/chat"');
    asked.push(question);
    return agreed;
  };
  await connectClient('claude-code', { url: base, key, write: true }, { ask });
  expect(asked).toEqual([`Change ${path}, for every project of Claude Code?`]);
  expect((await readFile(path, 'utf8')) === CLAUDE).toBe(!agreed);
  expect(printed.includes('Nothing was written.')).toBe(!agreed);
  expect(printed.includes('Then:\n\nclaude\n')).toBe(agreed);
});

test('a model of the demo is told to be one before it is written', async () => {
  expect((await connect('claude-code')).output).toContain('demo/chat belongs to the demo');
  expect((await connect('claude-code', '--mcp')).output).not.toContain('belongs to the demo');
  // An agent is asked, and uses tools of its own.
  const agent = (await connect('a2a', '--model', 'a2a/demo/agent')).output;
  expect(agent).toContain('a2a/demo/agent belongs to the demo');
  expect(agent).not.toContain('Name a real model');
});

test.each([
  ['claude-code', '.claude/settings.json', CLAUDE],
  ['codex', '.codex/config.toml', CODEX],
])('%s: a file that nobody changed since becomes what it was, after several writes', async (client, name, text) => {
  const path = await put(join(home, name), text);
  await wrote(client);
  await wrote(client, '--model', 'demo/echo');
  expect(await readFile(path, 'utf8')).toContain('demo/echo');
  expect((await stat(join(home, '.local/state/tollgate/connected.json'))).mode & 0o777).toBe(0o600);
  expect(await undid(client)).toContain(`Undone in ${path}`);
  expect(await readFile(path, 'utf8')).toBe(text);
  const again = await connect(client, '--undo');
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('nothing to undo')]);
  expect(existsSync(join(home, '.local/state/tollgate/connected.json'))).toBe(false);
});

/** Every file and folder below `folder`. */
const tree = async (folder: string) => (await readdir(folder, { recursive: true })).toSorted();

test.each<[string, readonly string[], string | null]>([
  ['claude-code', [], null],
  ['claude-code', [], '.claude/settings.json'],
  ['codex', ['--mcp'], null],
  ['claude-code', ['--project'], null],
])(
  '%s %j: the tree is as it was, without copies that hold keys and without empty folders',
  async (client, more, name) => {
    if (name !== null) await put(join(home, name), CLAUDE);
    const own = await put(join(home, '.claude/settings.json.before-tollgate-mine'), 'mine');
    const before = { home: await tree(home), project: await tree(join(project)) };
    await wrote(client, ...more);
    await wrote(client, ...more, ...(more.includes('--mcp') ? [] : ['--model', 'demo/echo']));
    await undid(client, ...more);
    expect(await tree(home)).toEqual(before.home);
    expect((await tree(project)).filter((one) => !one.startsWith('home-') && !one.startsWith('data'))).toEqual(
      before.project.filter((one) => !one.startsWith('home-') && !one.startsWith('data')),
    );
    expect(await readFile(own, 'utf8')).toBe('mine');
  },
);

test('folders and copies stay as long as something is in them that it did not make, or that it needs', async () => {
  await wrote('codex');
  await wrote('claude-code');
  await put(join(home, '.codex/notes'), 'mine');
  await undid('codex');
  expect(await tree(home)).toContain('.codex/notes');
  expect(existsSync(join(home, '.local/state/tollgate/connected.json'))).toBe(true);
  await undid('claude-code');
  expect(await tree(home)).toEqual(['.codex', '.codex/notes']);

  const path = await put(join(home, '.claude/settings.json'), CLAUDE);
  await wrote('claude-code');
  await wrote('claude-code', '--model', 'demo/echo');
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll('demo/echo', 'other'));
  const output = await undid('claude-code');
  const copies = (await tree(join(home, '.claude'))).filter((one) => one.includes('before-tollgate'));
  expect(copies).toHaveLength(1);
  expect(output).toContain(`as it was before: ${join(home, '.claude', copies[0]!)}`);
  expect(await readFile(join(home, '.claude', copies[0]!), 'utf8')).toBe(CLAUDE);
});

test('what was changed since stays: other values, comments, and values of ours that got another one', async () => {
  const path = await put(join(home, '.claude/settings.json'), CLAUDE);
  await wrote('claude-code');
  const written = await readFile(path, 'utf8');
  await writeFile(
    path,
    written
      .replace('// mine', '// mine, changed')
      .replace('"ANTHROPIC_DEFAULT_OPUS_MODEL": "demo/chat"', '"ANTHROPIC_DEFAULT_OPUS_MODEL": "other"'),
  );
  expect(await undid('claude-code')).toContain('kept env.ANTHROPIC_DEFAULT_OPUS_MODEL: it was changed since');
  const text = await readFile(path, 'utf8');
  expect(text).toContain('// mine, changed');
  expect(JSON.parse(text.replaceAll(/\/\/.*/g, ''))).toEqual({
    env: { EDITOR: 'vi', ANTHROPIC_MODEL: 'claude-old', ANTHROPIC_DEFAULT_OPUS_MODEL: 'other' },
  });
});

test('models and tools in one file are undone apart, and tables that were made for them go', async () => {
  const path = await put(join(home, '.codex/config.toml'), CODEX);
  await wrote('codex');
  await wrote('codex', '--mcp');
  await undid('codex', '--mcp');
  const between = await readFile(path, 'utf8');
  expect(between).toContain('demo/chat');
  expect(between).not.toContain('mcp_servers');
  await undid('codex');
  expect(await readFile(path, 'utf8')).toBe(CODEX.replace(' # before', ''));
});

test('a file that it made is removed, unless somebody has put something into it', async () => {
  const path = join(home, '.claude/settings.json');
  await wrote('claude-code');
  expect(await undid('claude-code')).toContain(`Removed ${path}, which connect had made`);
  expect(existsSync(path)).toBe(false);
  await wrote('claude-code');
  await writeFile(path, (await readFile(path, 'utf8')).replace('{', '{ "theme": "dark",'));
  await undid('claude-code');
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ theme: 'dark' });
});

test('an entry of a list goes with its list', async () => {
  const text = '# office\nversion: 1.2.1\ninterface:\n  customWelcome: Hello\n';
  const path = await put(join(project, 'librechat.yaml'), text);
  const { code, output } = await connect('librechat', '--write');
  expect(code, output).toBe(0);
  await writeFile(path, `${await readFile(path, 'utf8')}# later\n`);
  await undid('librechat');
  // The YAML writer may put an empty line before a comment.
  expect((await readFile(path, 'utf8')).replace('\n\n#', '\n#')).toBe(`${text}# later\n`);
});

test.each([
  ['claude-code', [], '.claude/settings.local.json', true],
  ['claude-code', ['--mcp'], '.mcp.json', false],
  ['codex', ['--mcp'], '.codex/config.toml', false],
  ['opencode', [], 'opencode.json', false],
  ['opencode', ['--mcp'], 'opencode.json', false],
  ['cursor', ['--mcp'], '.cursor/mcp.json', false],
])(
  '%s %j --project writes %s, without a question, and without a key if it is shared',
  async (client, more, name, hasKey) => {
    const { code, output } = await connect(client, ...more, '--project', '--write');
    expect(code, output).toBe(0);
    const path = join(project, name);
    const text = await readFile(path, 'utf8');
    expect(text).toContain(base);
    expect(text.includes(key)).toBe(hasKey);
    if (!hasKey) expect(text).toContain('TOLLGATE_API_KEY');
    expect(existsSync(join(home, '.claude'))).toBe(false);
    // The files of all projects are others.
    expect((await connect(client, '--undo')).code).toBe(1);
    await undid(client, '--project');
    expect(existsSync(path)).toBe(false);
  },
);

test('a file of a project that gets the key is one that git leaves out in a checkout', () => {
  const machine = { home, cwd: ROOT, env: {}, platform: process.platform };
  const connection = { base, key, balance: '1', model: 'demo/chat', models: [] };
  const files = CLIENTS.flatMap(({ models, tools, inProject }) => [models, tools, inProject?.models, inProject?.tools])
    .flatMap((recipe) => recipe?.(connection, machine).files ?? [])
    .filter((file) => file.path.startsWith(ROOT) && JSON.stringify(file.settings).includes(key));
  const paths = [...new Set(files.map(({ path }) => path))];
  expect(paths.length).toBeGreaterThan(2);
  const { stdout } = spawnSync('git', ['-C', ROOT, 'check-ignore', ...paths], { encoding: 'utf8' });
  expect(stdout.trim().split('\n')).toEqual(paths);
});

test.each([
  ['codex', /takes its models from no file of a project, only its tools: --mcp --project/],
  ['cline', /reads no settings from the folder of a project/],
])('%s --project is refused', async (client, words) => {
  const { code, output } = await connect(client, '--project');
  expect([code, output]).toEqual([1, expect.stringMatching(words)]);
});
