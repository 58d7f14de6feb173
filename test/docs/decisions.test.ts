import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, readTree } from '../architecture/source.ts';

// What refers to a decision finds it, and the index has all of them.

const FOLDER = 'docs/decisions';
const INDEX = `${FOLDER}/README.md`;
const files = readdirSync(join(ROOT, FOLDER)).filter((name) => name !== 'README.md');
const numberOf = (name: string): number => Number(name.slice(0, 4));
const numbers = new Set(files.map(numberOf));

const records = readTree([FOLDER], ['.md']).filter(({ path }) => path !== INDEX);
const index = readTree([FOLDER], ['README.md'])[0]!.text;
const texts = [
  ...readTree(
    ['src', 'test', 'docs', 'bench', 'bin', 'scripts', 'web', 'deploy', 'examples'],
    ['.ts', '.tsx', '.mjs', '.js', '.md', '.sql', '.sh', '.yaml', '.toml'],
  ),
  ...readTree(['.'], ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md']).filter(({ path }) => !path.includes('/')),
];

test('a number of a decision is that of a record', () => {
  const unknown = texts.flatMap(({ path, text }) =>
    [...text.matchAll(/\bdecisions? (?<first>\d+)(?:(?:,| and) (?<second>\d+)\b)?/gi)]
      .flatMap(({ groups }) => [groups!.first, groups!.second])
      .filter((each) => each !== undefined && !numbers.has(Number(each)))
      .map((each) => `${path}: decision ${each}`),
  );
  expect(unknown).toEqual([]);
});

test('a link to a decision leads to the record of its number', () => {
  const links = texts.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:\[(?<label>[^\]]*)\]\()?(?<to>[\w./-]*decisions\/\d[\w.-]*)/g)].map(({ groups }) => ({
      path,
      label: groups!.label ?? '',
      to: groups!.to!,
    })),
  );
  expect(links.length).toBeGreaterThan(100);
  const broken = links.filter(({ path, label, to }) => {
    const file = to.startsWith(FOLDER) ? to : join(dirname(path), to);
    const named = /decision (\d+)/i.exec(label)?.[1];
    return !existsSync(join(ROOT, file)) || (named !== undefined && Number(named) !== numberOf(to.split('/').at(-1)!));
  });
  expect(broken).toEqual([]);
});

test('a link between records leads to a record', () => {
  const broken = records.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((\d[\w.-]*)/g)].filter(([, to]) => !files.includes(to!)).map(([, to]) => `${path}: ${to}`),
  );
  expect(broken).toEqual([]);
});

test('a record has a title, a status, a context, a decision and consequences', () => {
  const wrong = records.filter(({ path, text }) => {
    const [title, ...paragraphs] = text.split('\n\n');
    const parts = paragraphs.flatMap((each) => /^\*\*(\w+)\.\*\* /.exec(each)?.[1] ?? []);
    return (
      !title!.startsWith(`# ${numberOf(path.slice(FOLDER.length + 1))}. `) ||
      parts.join(' ') !== 'Status Context Decision Consequences'
    );
  });
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test('the index lists each record once, with its title and its status', () => {
  const rows = [...index.matchAll(/^\| (\d+) \| \[(.+)\]\((.+)\) \| (.+) \|$/gm)].map(([, ...cells]) => cells);
  const expected = records.map(({ path, text }) => {
    const title = /^# (\d+)\. (.+)$/m.exec(text);
    const status = /^\*\*Status\.\*\* (.+)\.$/m.exec(text)?.[1] ?? '';
    return [title?.[1], title?.[2], path.slice(FOLDER.length + 1), status.replace(/^A/, 'a').replace(/^S/, 's')];
  });
  const byNumber = (a: readonly (string | undefined)[], b: readonly (string | undefined)[]) =>
    Number(a[0]) - Number(b[0]);
  expect(rows.toSorted(byNumber)).toEqual(expected.toSorted(byNumber));
  // A status names records that there are.
  const named = rows.flatMap((row) => (row[3]!.match(/\d+/g) ?? []).map(Number));
  expect(named.filter((each) => !numbers.has(each))).toEqual([]);
});
