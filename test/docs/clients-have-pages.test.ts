import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseJson } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, it, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { CLIENTS } from '../../src/program/cli/connect/run.ts';
import type { Machine, SettingsFile } from '../../src/program/cli/connect/client.ts';
import type { GatewayConnection } from '../../src/program/cli/connect/connection.ts';
import { settingsText } from '../../src/program/cli/connect/write-settings.ts';
import { ROOT } from '../architecture/source.ts';
import { VERSIONS } from '../support/stranger.ts';
import { snippetsOf } from './snippets.ts';

// A page and the command say the same, and the versions on a page are those that the tests run.

const MACHINE: Machine = { home: '/nowhere/home', cwd: '/nowhere/project', env: {}, platform: 'linux' };
const CONNECTION: GatewayConnection = {
  base: 'http://127.0.0.1:8402',
  key: 'svc-sk-…',
  balance: '10',
  model: 'demo/chat',
  models: ['demo/chat', 'demo/echo'].map((name) => ({ name, contextLength: 131_072, maxOutput: 4_096 })),
};
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  json: (text) => parseJson(text) as unknown,
  toml: parseToml,
  yaml: (text) => parseYaml(text) as unknown,
};

test('each client has a page, and each page a client', () => {
  const pages = readdirSync(join(ROOT, 'docs/clients')).map((name) => name.replace(/\.md$/, ''));
  // `generated` is about clients that have no settings: programs are made for them.
  expect(pages.toSorted()).toEqual([...CLIENTS.map(({ name }) => name), 'generated', 'README'].toSorted());
  const table = readFileSync(join(ROOT, 'docs/clients/README.md'), 'utf8');
  for (const { name } of CLIENTS) expect(table).toContain(`(${name}.md`);
});

test('the command is shown with names that it knows', () => {
  const names = new Set(CLIENTS.map(({ name }) => name));
  for (const page of readdirSync(join(ROOT, 'docs/clients')))
    for (const { text } of snippetsOf(`docs/clients/${page}`))
      for (const [, name] of text.matchAll(/tollgate\.mjs connect ([\w-]+)/g))
        if (!name!.startsWith('-')) expect(names, page).toContain(name);
});

describe.each(CLIENTS.map((client) => [client.name, client] as const))('%s', (name, { models, tools }) => {
  const page = `docs/clients/${name}.md`;
  const text = readFileSync(join(ROOT, page), 'utf8');
  const setups = [models, tools].flatMap((recipe) => (recipe ? [recipe(CONNECTION, MACHINE)] : []));

  it('has the settings on its page that the command writes', () => {
    const shown = snippetsOf(page);
    // Of these the page shows the client's own command.
    const isShown = ({ format, path }: SettingsFile) =>
      format !== 'dotenv' && !path.includes('.cline/') && !path.endsWith('.claude.json');
    for (const file of setups.flatMap(({ files }) => files).filter(isShown)) {
      const read = READERS[file.format]!;
      const blocks = shown.filter(({ language }) => language === file.format).map((block) => read(block.text));
      const wanted = read(settingsText(file));
      if (blocks.some((block) => contains(block, wanted))) continue;
      expect(blocks, `${page} and ${file.path}`).toContainEqual(wanted);
    }
  });

  it('names versions that are run', () => {
    const read = (path: string) =>
      JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Record<
        'dependencies' | 'devDependencies',
        Record<string, string>
      >;
    const installed = read('package.json');
    const forTests = read('test/packages/package.json').dependencies;
    const versions = { ...installed.dependencies, ...installed.devDependencies, ...forTests, ...VERSIONS };
    for (const [, packageName, version] of text.matchAll(/`([@\w/-]+)` (\d+\.\d+\.\d+)(?! for Python)/g))
      if (packageName !== 'anthropic') expect(versions[packageName!], packageName).toBe(version);
    const [, tried] = /tried with (\d+\.\d+\.\d+)/i.exec(text) ?? [];
    if (tried !== undefined) expect(Object.values(VERSIONS)).toContain(tried);
  });
});

/** Whether all of `part` is in `whole`. */
function contains(whole: unknown, part: unknown): boolean {
  if (part === null || typeof part !== 'object' || Array.isArray(part))
    return JSON.stringify(whole) === JSON.stringify(part);
  return (
    whole !== null &&
    typeof whole === 'object' &&
    Object.entries(part).every(([name, value]) => contains((whole as Record<string, unknown>)[name], value))
  );
}
