import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { makePlace, type Place } from './tollgate.ts';

// The files belong to other programs, and people have comments in them.

let place: Place;
let key: string;
let base: string;
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['start']);
  ({ base_url: base, api_key: key } = (await place.read('dev.json')) as { base_url: string; api_key: string });
});
afterAll(() => place.clear());

async function put(name: string, text: string): Promise<string> {
  const path = join(place.dir, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}
const connect = async (...args: readonly string[]) =>
  place.run(['connect', ...args, ...(args.includes('--write') ? ['--yes'] : [])]);
const backupsOf = async (path: string) =>
  (await readdir(dirname(path))).filter((name) => name.startsWith(`${path.slice(dirname(path).length + 1)}.before-`));

const CLAUDE = `{
\t"permissions": { "allow": ["Bash(ls:*)"] }, // kept
\t"env": {
\t\t"EDITOR": "vi",
\t\t"ANTHROPIC_MODEL": "claude-old"
\t}
}
`;
const CODEX = `# mine
model = "gpt-old" # before
approval_policy = "on-request"
notify = [
  "a",
  "b",
]

[model_providers.other]
name = "other"

[model_providers.tollgate]
env_key = "OLD_KEY"
request_max_retries = 1 # mine too

[tools]
web_search = true
since = 2026-01-02
`;
const LIBRECHAT = `# LibreChat of the office
version: 1.2.1
interface:
  customWelcome: 'Hello there'   # kept
endpoints:
  custom:
    - name: groq
      apiKey: \${GROQ_API_KEY}
`;

test('JSON keeps comments, tabs and other values, and the old file is kept beside it', async () => {
  const path = await put('.claude/settings.json', CLAUDE);
  await chmod(path, 0o644);
  const { code, output } = await connect('claude-code', '--write');
  expect(code, output).toBe(0);
  const text = await readFile(path, 'utf8');
  expect(text).toContain('"permissions": { "allow": ["Bash(ls:*)"] }, // kept\n');
  expect(text).toContain('\t\t"EDITOR": "vi",\n');
  expect(text).toContain('\t\t"ANTHROPIC_MODEL": "demo/chat"');
  expect(text).toContain(`\t\t"ANTHROPIC_AUTH_TOKEN": "${key}"`);
  // It has a key now.
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const [backup, ...more] = await backupsOf(path);
  expect(more).toEqual([]);
  expect(await readFile(join(dirname(path), backup!), 'utf8')).toBe(CLAUDE);
  expect(output).toContain(backup);

  const again = await connect('claude-code', '--write');
  expect(again.output).toContain(`${path} has it already.`);
  expect(await readFile(path, 'utf8')).toBe(text);
  expect(await backupsOf(path)).toHaveLength(1);
});

test('TOML keeps comments and other tables, and a name that contradicts is taken away', async () => {
  const path = await put('.codex/config.toml', CODEX);
  expect((await connect('codex', '--write')).code).toBe(0);
  expect((await connect('codex', '--mcp', '--write')).code).toBe(0);
  const text = await readFile(path, 'utf8');
  expect(text).toMatch(/^# mine\nmodel = "demo\/chat"\napproval_policy = "on-request"\n/);
  expect(text).toContain('request_max_retries = 1 # mine too\n');
  expect(parseToml(text)).toEqual({
    ...parseToml(CODEX),
    model: 'demo/chat',
    model_provider: 'tollgate',
    model_context_window: 131_072,
    model_providers: {
      other: { name: 'other' },
      tollgate: {
        request_max_retries: 1,
        name: 'tollgate',
        base_url: `${base}/api/v1`,
        wire_api: 'responses',
        experimental_bearer_token: key,
      },
    },
    mcp_servers: { tollgate: { url: `${base}/mcp`, http_headers: { Authorization: `Bearer ${key}` } } },
  });
});

test('the context of a model goes when an agent takes its place', async () => {
  const path = await put('.codex/config.toml', '');
  expect((await connect('codex', '--write')).code).toBe(0);
  expect(parseToml(await readFile(path, 'utf8'))).toHaveProperty('model_context_window', 131_072);
  expect((await connect('codex', '--write', '--model', 'a2a/demo/agent')).code).toBe(0);
  expect(parseToml(await readFile(path, 'utf8'))).not.toHaveProperty('model_context_window');
});

test('YAML and .env keep comments and other entries', async () => {
  const path = await put('librechat.yaml', LIBRECHAT);
  const env = await put('.env', '# keys\nGROQ_API_KEY=abc\nexport TOLLGATE_API_KEY=old\n');
  expect((await connect('librechat', '--write')).code).toBe(0);
  const text = await readFile(path, 'utf8');
  expect(text).toContain('# LibreChat of the office\n');
  expect(text).toMatch(/'Hello there' +# kept\n/);
  expect(parseYaml(text)).toMatchObject({
    version: '1.2.1',
    endpoints: {
      custom: [
        { name: 'groq', apiKey: '${GROQ_API_KEY}' },
        { name: 'tollgate', apiKey: '${TOLLGATE_API_KEY}', models: { default: ['demo/chat', 'demo/echo'] } },
      ],
    },
  });
  expect(await readFile(env, 'utf8')).toBe(`# keys\nGROQ_API_KEY=abc\nexport TOLLGATE_API_KEY=${key}\n`);
});

test('a link to a file stays a link', async () => {
  const target = await put('dotfiles/opencode.json', '{"theme":"dark"}');
  const link = join(place.dir, '.config/opencode/opencode.json');
  await mkdir(dirname(link), { recursive: true });
  await symlink(target, link);
  expect((await connect('opencode', '--write')).code).toBe(0);
  expect(await readlink(link)).toBe(target);
  expect(JSON.parse(await readFile(target, 'utf8'))).toMatchObject({ theme: 'dark', model: 'tollgate/demo/chat' });
});

test.each([
  ['a broken file', 'claude-code', '.claude/settings.json', '{\n  "env": {\n', 'line 3'],
  ['a value where a table is wanted', 'claude-code', '.claude/settings.json', '{"env": 5}', 'cannot be changed'],
  [
    'a table within a line',
    'codex',
    '.codex/config.toml',
    'model_providers = { tollgate = { name = "x" } }\n',
    'cannot be changed',
  ],
  [
    'a line of a text that looks like ours',
    'codex',
    '.codex/config.toml',
    'note = """\nmodel = "x"\n"""\n',
    'form is not known',
  ],
])('%s is refused with what to add by hand, and nothing is written', async (_name, client, name, text, words) => {
  const path = await put(name, text);
  const before = await backupsOf(path);
  const { code, output } = await connect(client, '--write');
  expect(code).toBe(1);
  expect(output).toContain(words);
  expect(output).toMatch(/Nothing was written\. Add this by hand:[^]*demo\/chat/);
  expect(await readFile(path, 'utf8')).toBe(text);
  expect(await backupsOf(path)).toEqual(before);
});

test('Gemini CLI gets the model for what it does beside the conversation too, next to aliases of its user', async () => {
  const mine = { mine: { modelConfig: { model: 'gemini-3-pro-preview' } } };
  const path = await put('.gemini/settings.json', JSON.stringify({ modelConfigs: { customAliases: mine } }));
  const { code, output } = await connect('gemini-cli', '--write');
  expect(code, output).toBe(0);
  const ours = { modelConfig: { model: 'demo/chat' } };
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
    security: { auth: { selectedType: 'gemini-api-key' } },
    modelConfigs: { customAliases: { ...mine, 'chat-compression-default': ours, 'gemini-3-flash-base': ours } },
  });
});

test('without --write no file of the home is touched, whatever the client', async () => {
  const { stdout } = await connect('--list');
  const names = stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(' ')[0]!);
  expect(names.length).toBeGreaterThan(15);
  const home = join(place.dir, 'empty-home');
  await mkdir(home);
  for (const name of names) {
    const { code, output } = await place.run(['connect', name], { HOME: home });
    expect(code, output).toBe(0);
    expect(output, name).toContain(`/docs/guide/clients/${name}`);
  }
  expect(await readdir(home)).toEqual([]);
});
