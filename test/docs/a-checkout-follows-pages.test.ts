import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../architecture/source.ts';
import { snippetsOf } from './snippets.ts';

// What a reader needs for the commands of a page besides `npm ci --omit=dev`, and what one page leaves for the next.

const PAGES = ['README.md', ...['start', 'clients', 'use', 'sell', 'run', 'reference', 'how'].flatMap(pagesIn)];

function pagesIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, 'docs', folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${folder}/${name}`);
}

const installed = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object }).dependencies,
);
const runs = (page: string) => snippetsOf(page).filter(({ note }) => !note.startsWith('no-run'));

/** Packages that a program imports, without what Node has. */
const importsOf = (program: string): readonly string[] =>
  [...program.matchAll(/\bimport (?:[^'"]*\sfrom )?['"]((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^'"]*)?['"]/g)]
    .map((match) => match[1]!)
    .filter((name) => !name.startsWith('.') && !installed.includes(name));

test('a page whose programs import a package that the gateway does not need has the line that installs it', () => {
  const missing = PAGES.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const lines =
      text
        .match(/npm install [^`\n]*/g)
        ?.join(' ')
        .split(' ') ?? [];
    const programs = runs(page).filter(({ language }) => /^(?:sh|ts|js)$/.test(language));
    return [...new Set(programs.flatMap((program) => importsOf(program.text)))]
      .filter((name) => !lines.includes(name))
      .map((name) => `${page}: ${name}`);
  });
  expect(missing).toEqual([]);
});

test('no example asks for the days since a date: such a range is too long a year later', () => {
  const aging = PAGES.flatMap((page) =>
    snippetsOf(page)
      .flatMap(({ language, text }) => (language === 'sh' ? text.split('\n') : []))
      .filter((line) => (/start_date=/.test(line) && !/end_date=/.test(line)) || /usage .*--from (?!.*--to)/.test(line))
      .map((line) => `${page}: ${line}`),
  );
  expect(aging).toEqual([]);
});

describe('the README and the tutorials may be followed in one checkout', () => {
  const followed = ['README.md', ...pagesIn('start')];
  const ofOnePage = (named: (page: string) => readonly string[]) => {
    const all = followed.flatMap((page) => [...new Set(named(page))]);
    return all.filter((name, index) => all.indexOf(name) !== index);
  };

  test('each writes files of its own', () => {
    const written = (page: string) =>
      snippetsOf(page).flatMap(({ language, text }) =>
        language === 'toml' ? [...text.matchAll(/^# ([\w-]+\.toml)$/gm)].map((match) => match[1]!) : [],
      );
    expect(written('README.md')).toContain('provider.toml');
    expect(ofOnePage(written)).toEqual([]);
  });

  test('each makes a wallet of its own, because a wallet has one proxy', () => {
    const made = (page: string) =>
      snippetsOf(page).flatMap(({ text }) => [...text.matchAll(/keygen .*--out (\S+)/g)].map((match) => match[1]!));
    expect(made('README.md')).toEqual(['wallet.json']);
    expect(ofOnePage(made)).toEqual([]);
  });

  test('each that serves beside npm start names a port and a data directory', () => {
    const served = followed.flatMap((page) =>
      runs(page).flatMap(({ text }) => text.split('\n').filter((line) => /tollgate\.mjs serve /.test(line))),
    );
    expect(served.length).toBeGreaterThan(2);
    for (const line of served) expect(line).toMatch(/--data \.\/\w+ --port (?!8402)\d+/);
  });
});
