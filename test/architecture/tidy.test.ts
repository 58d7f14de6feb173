import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HTTP_ERRORS } from '../../src/server/http/error-table.ts';
import { ERROR_CODES } from '../../src/foundation/errors.ts';
import { readTree, ROOT, type SourceFile } from './source.ts';
import {
  checkPage,
  checkWording,
  assignedFunctions,
  ASSIGNED_ONCE,
  GENERATORS_MADE_ONCE,
  innerGenerators,
  knownNames,
  literalGetters,
  MADE_ONCE,
  needlessExports,
  privateWords,
  staleNames,
  wideComments,
  type Rule,
} from './tidy-prose.ts';
import { dialectNames } from './nouns.ts';
import {
  checkCode,
  checkDependencies,
  checkName,
  checkSql,
  checkTable,
  checkText,
  LONGER_FILES,
  parsedColumns,
  unusedStatements,
  type Manifest,
} from './tidy-rules.ts';

const FOLDERS = ['src', 'test', 'bench', 'scripts', 'bin', 'web'];
/** The types of the API for the web pages. A program writes them, and the words in them are those of the API's schemas. */
const GENERATED = 'web/src/api/schema.d.ts';
const code = readTree(FOLDERS, ['.ts', '.tsx', '.mts', '.mjs', '.js', '.css', '.html']).filter(
  ({ path }) => path !== GENERATED,
);
const sql = readTree(FOLDERS, ['.sql']);
const prose = [...readTree(['docs', 'src'], ['.md']), ...readTree(['.ci'], [''])];
const readManifest = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Manifest;
const manifests = [readManifest('package.json'), readManifest('test/packages/package.json')];
const dependenciesPage = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
for (const name of readdirSync(ROOT))
  if (/\.(?:md|json|toml)$/.test(name) && name !== 'package-lock.json')
    prose.push({ path: name, text: readFileSync(join(ROOT, name), 'utf8') });

/** The files that say what a secret or a forbidden word looks like. */
const itself = (file: SourceFile) => file.path.startsWith('test/architecture/tidy');

const sources = code.filter((file) => !itself(file));
const src = sources.filter(({ path }) => path.startsWith('src/'));
const web = sources.filter(({ path }) => path.startsWith('web/'));
const pages = prose.filter(({ path }) => path.endsWith('.md'));
const wordings = [...[...src, ...web].map(checkWording), ...pages.map(checkPage)];
const known = knownNames(
  [...code, ...sql, ...readTree(['docs', 'examples', 'test', 'src', 'web'], [''])].map(({ path }) => path),
);
const wording = (rule: Rule) => wordings.flatMap((found) => found[rule] ?? []);
const proseFindings: Readonly<Record<Rule | 'names that are no nouns', string[]>> = {
  'getters in object literals': src.flatMap(literalGetters),
  'generator functions in functions': src.flatMap(innerGenerators),
  'functions assigned to properties': src.flatMap(assignedFunctions),
  'export *': wording('export *'),
  'docstrings that begin with What, Who or Where': wording('docstrings that begin with What, Who or Where'),
  riddles: wording('riddles'),
  'private words': [...src, ...pages].flatMap(privateWords),
  "a validator's words": wording("a validator's words"),
  'names that are no nouns': src.filter(({ path }) => path.endsWith('.ts')).flatMap(dialectNames),
  'wide comments': sources.flatMap(wideComments),
  'names of files that do not exist': [...sources, ...pages].flatMap((file) => staleNames(file, known)),
};

describe('the checkout is tidy', () => {
  test('names of files and folders', () =>
    expect([...code, ...sql].flatMap((file) => checkName(file.path))).toEqual([]));
  test('words', () =>
    expect([...code, ...sql, ...prose].filter((file) => !itself(file)).flatMap(checkText)).toEqual([]));
  test('code', () => expect(code.filter((file) => !itself(file)).flatMap(checkCode)).toEqual([]));
  test.each(Object.entries(proseFindings))('%s', (_rule, findings) => expect(findings).toEqual([]));
  test('exports that nothing uses', () =>
    expect(
      needlessExports(
        src,
        [...sources, ...readTree(['examples'], ['.ts'])].filter(({ path }) => !path.startsWith('src/')),
      ),
    ).toEqual([]));
  // The parts of the design system are whole, whether a page uses all of them today or not.
  test('exports of the web pages that nothing uses', () =>
    expect(
      needlessExports(
        web.filter(({ path }) => !path.startsWith('web/src/ui/')),
        sources.filter(({ path }) => path.startsWith('test/') || path.startsWith('web/src/ui/')),
      ),
    ).toEqual([]));
  test('statements', () => {
    const statements = sql.filter((file) => !file.path.includes('/migrations/'));
    expect([
      ...statements.flatMap(checkSql),
      ...statements.flatMap(parsedColumns),
      ...unusedStatements(statements, src),
    ]).toEqual([]);
    const parsing = {
      path: 'a.sql',
      text: "SELECT json(d) -> 'a', e ->> 'b', f::json, value ->> 0 FROM json_each($1)",
    };
    expect(parsedColumns(parsing)).toHaveLength(4);
  });
  test('dependencies', () => expect(checkDependencies(manifests, dependenciesPage)).toEqual([]));
  test('error tables', () => expect(checkTable('HTTP_ERRORS', ERROR_CODES, HTTP_ERRORS)).toEqual([]));
  test('exceptions to the length have a reason and exist', () => {
    for (const [path, reason] of Object.entries(LONGER_FILES)) {
      expect(reason.length).toBeGreaterThan(20);
      expect(code.map((file) => file.path)).toContain(path);
    }
  });
  test('files that may have getters in object literals have some', () => {
    const withGetters = src.filter(({ text }) => literalGetters(file(text)).length > 0).map(({ path }) => path);
    expect(withGetters).toEqual(expect.arrayContaining([...MADE_ONCE]));
  });
  test('files that may have generator functions in functions have some', () => {
    const withGenerators = src.filter(({ text }) => innerGenerators(file(text)).length > 0).map(({ path }) => path);
    expect(withGenerators).toEqual(expect.arrayContaining([...GENERATORS_MADE_ONCE]));
  });
  test('files that may assign functions to properties do so', () => {
    const assigning = src.filter(({ text }) => assignedFunctions(file(text)).length > 0).map(({ path }) => path);
    expect(assigning).toEqual(expect.arrayContaining([...ASSIGNED_ONCE]));
  });
});

const file = (text: string, path = 'src/x.ts'): SourceFile => ({ path, text });

describe('what is untidy is found', () => {
  test.each([
    ['src/Ledger.ts', 'kebab-case'],
    ['src/gatewayErrors.ts', 'kebab-case'],
    ['src/snake_case.sql', 'kebab-case'],
    ['src/utils.ts', 'drawer'],
    ['src/http-helpers.ts', 'drawer'],
    ['src/common/x.ts', 'drawer'],
    ['test/store-utils.test.ts', 'drawer'],
  ])('the name %s', (path, says) => expect(checkName(path).join()).toContain(says));

  test.each([
    ['a promise', '// TODO: later', ':1 says TODO'],
    ['a promise on its line', 'x\n// FIXME', ':2 says FIXME'],
    ['a private path', `const x = '/work/main';`, 'one machine'],
    ['a home', 'see /home/jane/notes', 'one machine'],
    ['an OpenAI key', `'sk-proj-${'a1'.repeat(20)}'`, 'OpenAI'],
    ['a GitHub token', `ghp_${'a'.repeat(36)}`, 'GitHub'],
    ['a private key', '-----BEGIN PRIVATE KEY-----\nMC4C', 'private key'],
    ['a gateway key', `svc-sk-v2-${'5K'.repeat(25)}`, 'gateway key'],
  ])('%s', (_name, text, says) => expect(checkText(file(text)).join()).toContain(says));

  test.each([
    ['a skipped test', `test.skip('x', () => {})`, 'does not run'],
    ['a lone test', `describe.only('x', () => {})`, 'does not run'],
    ['a test to come', `it.todo('x')`, 'does not run'],
    ['any as an annotation', `const x: any = 1;`, 'uses any'],
    ['any as an argument', `const x = new Map<string, any>();`, 'uses any'],
    ['any as a cast', `const x = JSON.parse(t) as any;`, 'uses any'],
    ['an array of any', `type X = any[];`, 'uses any'],
    ['a silenced compiler', `// @ts-expect-error later\nconst x = 1;`, 'silences the compiler'],
    ['a silenced linter', `/* eslint-disable */`, 'silences the linter'],
    ['a silenced linter without a reason', `// oxlint-disable-next-line no-shadow`, 'silences the linter'],
    ['a long file', 'const x = 1;\n'.repeat(501), '501 lines'],
  ])('%s', (_name, text, says) => expect(checkCode(file(text)).join()).toContain(says));

  test.each([
    ['a statement without a name', 'SELECT 1', 'has no line'],
    ['no statement', '-- name: one\n-- nothing', 'holds 0 statements'],
    ['a named statement that is two', '-- name: one\nSELECT 1; SELECT 2', 'src/x.ts one holds 2 statements'],
    ['a name of another form', '-- name: find-it\nSELECT 1', 'camelCase'],
    ['a name twice', '-- name: one\nSELECT 1\n\n-- name: one\nSELECT 2', 'names two statements one'],
    ['text before the first name', 'SELECT 0\n-- name: one\nSELECT 1', 'text before'],
  ])('%s', (_name, text, says) => expect(checkSql(file(text)).join()).toContain(says));
  test('named statements', () =>
    expect(checkSql(file('-- name: one\nSELECT 1\n\n-- name: two\nSELECT 2'))).toEqual([]));
  test('a statement that nothing loads', () =>
    expect(unusedStatements([file('-- name: one\nSELECT 1')], [file("load('two')")]).join()).toContain('one'));

  const page = '| `a` | 1.0.0 | MIT | x |\n';
  test.each([
    ['a range', { a: '^1.0.0' }, 'pin one version'],
    ['a tag', { a: 'latest' }, 'pin one version'],
    ['a missing row', { a: '1.0.0', b: '2.0.0' }, 'no row for b'],
    ['an old row', { a: '1.1.0' }, 'says a 1.0.0'],
    ['a row too many', {}, 'names a, which'],
  ])('%s', (_name, dependencies, says) => expect(checkDependencies([{ dependencies }], page).join()).toContain(says));

  test('a hole in an error table', () => expect(checkTable('T', ['a', 'b'], { a: 1 })).toEqual(['T lacks b']));
  test('a stranger in an error table', () =>
    expect(checkTable('T', ['a'], { a: 1, c: 1 })).toEqual(['T has c, which is no error code']));
  test('a code twice', () => expect(checkTable('T', ['a', 'a'], { a: 1 })).toEqual(['ERROR_CODES has a twice']));
});

describe('words and shapes that are untidy are found', () => {
  const known = knownNames(['src/foundation/wire/lines.ts', 'docs/use/tools.md']);
  test.each([
    ['a private word', privateWords(file('const taskDoors = 1;')), ':1 has the word doors?: the field says route'],
    [
      'a name that is no noun',
      dialectNames(file('const { kept: asked } = request;')),
      ':1 declares asked: name it by the noun that it is',
    ],
    [
      'a getter in an object literal',
      literalGetters(file('const make = () => ({\n  get size(): number {\n    return 1;\n  },\n});')),
      ':2 has the getter size in an object literal',
    ],
    [
      'a setter in an object literal',
      literalGetters(file('f({ set size(to: number) { keep(to); } });')),
      'use a class, a method or a data property',
    ],
    [
      'a generator function in a function',
      innerGenerators(file('const make = () => {\n  async function* say() {\n    yield 1;\n  }\n  return say();\n};')),
      ':2 has the generator function say in a function',
    ],
    [
      'a generator as a method of a literal',
      innerGenerators(
        file('export function make() {\n  return {\n    async *say() {\n      yield 1;\n    },\n  };\n}'),
      ),
      ':3 has the generator function say in a function',
    ],
    [
      'a generator as a field of a class',
      innerGenerators(file('class Talk {\n  say = function* () {\n    yield 1;\n  };\n}')),
      'use a function of the module or a method of a class',
    ],
    [
      'a function assigned to a property',
      assignedFunctions(file('class Talk {\n  #wake = null;\n  wait() {\n    this.#wake = () => this.go();\n  }\n}')),
      ':4 assigns a function directly to a property',
    ],
    [
      'a function on the next line',
      assignedFunctions(file('stream.push = async (chunk) =>\n  keep(chunk);')),
      'name the function with const first',
    ],
    ['all of another file', checkWording(file(`export * from './x.ts';`))['export *'], 'name what the file gives'],
    [
      'a docstring that begins with What',
      checkWording(file('/**\n * What is kept.\n */'))['docstrings that begin with What, Who or Where'],
      'What',
    ],
    [
      'a riddle in a comment',
      checkWording(file('// What there is none of, of those that there are')).riddles,
      'that there are',
    ],
    ['a riddle in an error', checkWording(file('fail(`${name} is none`);')).riddles, 'is none'],
    ['a riddle on a page', checkPage(file('Keys are none.', 'docs/x.md')).riddles, 'are none'],
    [
      "a validator's words",
      checkWording(file(`\nfail('must NOT have fewer than 1 characters');`))["a validator's words"],
      ':2 has "must NOT have"',
    ],
    ['a wide comment', wideComments(file(`  // ${'x '.repeat(60)}x`)), 'a comment of 126 columns'],
    [
      'a path that a page names',
      staleNames(file('see src/foundation/wire/gone', 'docs/x.md'), known),
      'src/foundation/wire/gone',
    ],
    [
      'a file of its module that a page names',
      staleNames(
        file('see `json/lines.ts` and `src/foundation/wire/lines.ts`', 'src/foundation/wire/README.md'),
        known,
      ),
      ':1 names `json/lines.ts`',
    ],
    ['a file that a comment names', staleNames(file('\n// as in old-errors.ts'), known), ':2 names old-errors.ts'],
  ])('%s', (_name, findings, says) => expect(findings?.join()).toContain(says));

  test('an export that nothing uses', () => {
    const one = file('export const used = 1;\nexport const lonely = 2;', 'src/one.ts');
    const other = file(`// lonely\nimport { used } from '../src/one.ts';`, 'test/one.test.ts');
    expect(needlessExports([one], [other])).toEqual(['src/one.ts:2 exports lonely, which no other file uses']);
  });

  test('what is right is not found', () => {
    expect(literalGetters(file('class Pile {\n  get size() {\n    return 1;\n  }\n}'))).toEqual([]);
    expect(literalGetters(file('const pile = { get: () => 1, get size2() { return 1; } };', MADE_ONCE[0]))).toEqual([]);
    expect(literalGetters(file('// get x\nconst pile = { get(key: string) { return key; } };'))).toEqual([]);
    const inner = 'const make = () => { function* say() { yield 1; } return say(); };';
    expect(innerGenerators(file(inner, GENERATORS_MADE_ONCE[0]))).toEqual([]);
    expect(innerGenerators(file('class Talk {\n  async *say() {\n    yield 1;\n  }\n}'))).toEqual([]);
    expect(innerGenerators(file('export function* say() {\n  yield 1;\n}\nconst NOT_RUN = { *say() {} };'))).toEqual(
      [],
    );
    expect(
      assignedFunctions(file('const wake = () => {};\nthis.wake = wake;\nlet run = null;\nrun = () => {};')),
    ).toEqual([]);
    expect(wideComments(file(`const x = '${'x'.repeat(130)}'; // why`))).toEqual([]);
    expect(staleNames(file('// src/foundation/wire/lines.ts, lines.ts, test/model, ./my-own.ts'), known)).toEqual([]);
    expect(staleNames(file('[MCP](docs/use/tools.md) in src/foundation/wire/', 'README.md'), known)).toEqual([]);
  });
});

describe('what is tidy is not found', () => {
  test.each([
    'src/billing/sql/lock-insert.sql',
    'test/openai/stream.test.ts',
    'src/server/http/error-table.ts',
    'src/mcp/v2025.ts',
    'src/x.sqlite.sql',
  ])('%s', (path) => expect(checkName(path)).toEqual([]));
  test.each([
    `// any number of them, any of which may fail\nconst many = 'any'; type anyone = string; f(x.any);`,
    `export const only = (x: unknown) => x; list.only.skip;`,
    `// oxlint-disable-next-line no-control-regex -- header values may hold none\nconst x = 1;`,
  ])('%s', (text) => expect(checkCode(file(text))).toEqual([]));
  test('semicolons in strings and comments', () =>
    expect(checkSql(file(`-- name: one\n-- a; b\nSELECT 'x; y''; z';\n`))).toEqual([]));
});
