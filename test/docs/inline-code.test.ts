import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { OPTION_TABLES } from '../../scripts/configuration-tables.ts';
import { createProgram } from '../../src/program/cli/program.ts';
import { ROOT, readTree, type SourceFile } from '../architecture/source.ts';

// What the guide names in code exists: commands, options and files. And it is what its readers meet, and no name of the
// code, such as one that a renaming put there.

/** Pages that explain the code name its parts. */
const OF_THE_CODE = /^docs\/(?:architecture|reference\/mappings-|decisions\/)/;
const pages = [
  ...readTree(['docs'], ['.md']),
  ...readTree(['.'], ['README.md']).filter(({ path }) => path === 'README.md'),
];
const guide = pages.filter(({ path }) => !OF_THE_CODE.test(path));

/** Names of protocols and their SDKs that functions here have, too. */
const OF_PROTOCOLS = [
  'countTokens',
  'generateImages',
  'isError',
  'statusMessage',
  'structuredContent',
  'inputSchema',
  'videoModel',
  'transferWithAuthorization',
];

/** The code in the sentences of a page, without its blocks. */
const codesOf = ({ text }: SourceFile): readonly string[] =>
  [...text.replace(/^```.*?^```$/gms, '').matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
const wrong = (find: (code: string, page: SourceFile) => boolean, of = guide): readonly string[] =>
  of.flatMap((page) =>
    codesOf(page)
      .filter((code) => find(code, page))
      .map((code) => `${page.path}: ${code}`),
  );

describe('code in the sentences of the guide', () => {
  test('is no name of the source', () => {
    const names = new Set(
      readTree(['src'], ['.ts']).flatMap(({ text }) =>
        [...text.matchAll(/\b(?:function\*? (\w+)|const (\w+) = (?:async )?(?:\(|create\w+\())/g)].map(
          ([, declared, made]) => declared ?? made!,
        ),
      ),
    );
    for (const known of OF_PROTOCOLS) names.delete(known);
    const isOfSeveralWords = /^[a-z]+[A-Z]\w*$/;
    expect(
      wrong((code) => isOfSeveralWords.test(code.replace(/\(\)$/, '')) && names.has(code.replace(/\(\)$/, ''))),
    ).toEqual([]);
  });

  test('names commands that there are', () => {
    const known = new Set<string>();
    const add = (command: Command, path: readonly string[]) => {
      known.add(path.join(' '));
      for (const each of command.commands) add(each, [...path, each.name()]);
    };
    add(createProgram(), []);
    // What stands behind a name that has no commands of its own is an argument.
    const isUnknown = (words: readonly string[]): boolean => words.length > 0 && !known.has(words[0]!);
    const wordsOf = (code: string) =>
      /^(?:node bin\/tollgate\.mjs|tollgate) ([a-z][a-z-]*(?: [a-z][a-z-]*)*)/.exec(code)?.[1]?.split(' ') ?? [];
    expect(wrong((code) => isUnknown(wordsOf(code)), pages)).toEqual([]);
  });

  test('names options that a program here, or a known other one, has', () => {
    const sources = readTree(
      ['src', 'scripts', 'bench', 'test', 'deploy', '.ci'],
      ['.ts', '.mjs', '.sh', '.yaml', 'run', 'Dockerfile'],
    )
      .filter(({ path }) => path !== 'test/docs/inline-code.test.ts')
      .map(({ text }) => text)
      .join('\n');
    const ofOthers = new Set([
      '--rm',
      '--volume',
      '--omit',
      '--save-exact',
      '--no-git-tag-version',
      '--noEmit',
      '--library',
      '--trace-gc',
      '--max-semi-space-size',
    ]);
    // `parseArgs` names an option without its dashes.
    const isKnown = (option: string) =>
      ofOthers.has(option) || sources.includes(option) || sources.includes(`${option.slice(2)}: { type:`);
    const unknown = (code: string) => (code.match(/(?<![\w-])--[a-z][\w-]+/g) ?? []).some((each) => !isKnown(each));
    expect(wrong(unknown)).toEqual([]);
  });

  test('names options of the configuration that there are', () => {
    const known = Object.values(OPTION_TABLES).flatMap((options) => Object.keys(options));
    const blocks = new Set(known.filter((key) => key.includes('.')).map((key) => key.split('.')[0]));
    /** A file of a backup, and methods of SDKs. */
    const others = new Set(['database.dump', 'responses.stream', 'responses.parse']);
    const isGone = (code: string, { path }: SourceFile) => {
      const [, key, block] = /^(([a-z_]+)(?:\.[a-z_0-9]+)+)(?: = .*)?$/.exec(code) ?? [];
      return (
        key !== undefined &&
        blocks.has(block) &&
        !others.has(key) &&
        !path.startsWith('docs/clients/') &&
        !known.some((each) => each === key || each.startsWith(`${key}.`))
      );
    };
    expect(wrong(isGone)).toEqual([]);
  });

  test('names environment variables and metrics that there are', () => {
    const sources = readTree(
      ['src', 'deploy', 'bench', 'test', 'scripts'],
      ['.ts', '.yaml', '.sh', '.service', '.toml'],
    )
      .map(({ text }) => text)
      .join('\n');
    const namesIn = (code: string) => code.match(/\b(?:TOLLGATE_[A-Z0-9_]+|OTEL_[A-Z_]+|tollgate_[a-z_]+)\b/g) ?? [];
    // The client of Prometheus adds the endings of histograms.
    const isGone = (code: string) =>
      namesIn(code).some((name) => !sources.includes(name.replace(/_(?:bucket|count|sum)$/, '')));
    expect(wrong(isGone, pages)).toEqual([]);
  });

  test('names files of this repository that there are', () => {
    const isGone = (code: string) =>
      /^(?:src|test|docs|scripts|deploy|examples|bench)\/[\w./-]+\w$/.test(code) && !existsSync(join(ROOT, code));
    expect(wrong(isGone, pages)).toEqual([]);
  });
});
