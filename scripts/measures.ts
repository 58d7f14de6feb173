// Prints the measures of the source by which it is kept readable:
// node scripts/measures.ts [--circles] [--types] [--words]
// --circles names the files of each circle, --types the types that more than two files declare, --words the words of
// each page of the guide.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findCircles, findFolderCircles } from '../test/architecture/circles.ts';
import { floorOf, FLOORS, PATHS } from '../test/architecture/floors.ts';
import { importsOf, MODULES } from '../test/architecture/import-rules.ts';
import { dialectNames } from '../test/architecture/nouns.ts';
import { readTree, ROOT } from '../test/architecture/source.ts';
import { pagesOfQuestions } from '../test/docs/guide-words.ts';

const { values } = parseArgs({
  options: { circles: { type: 'boolean' }, types: { type: 'boolean' }, words: { type: 'boolean' } },
});
const files = readTree(['src'], ['.ts']);
const { imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { imports: Record<string, string> };
const linesOf = (text: string) => text.split('\n').length - 1;
const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
const lengths = files.map(({ text }) => linesOf(text)).toSorted((a, b) => a - b);
/** Indexes and entries of threads may be short. */
const mayBeShort = (path: string) => /(?:\/index|\/compose|-program|-worker|^src\/main|\/version)\.ts$/.test(path);
const short = files.filter(({ path, text }) => linesOf(text) < 40 && !mayBeShort(path));
const count = (pattern: RegExp) => sum(files.map(({ text }) => text.match(pattern)?.length ?? 0));

function row(what: string, value: string | number): void {
  console.log(`${what.padEnd(64)} ${value}`);
}

console.log('Structure');
row('entries in src', readdirSync(join(ROOT, 'src')).length);
const folderCircles = findFolderCircles(files, Object.values(PATHS));
row('circles of folders inside modules', folderCircles.length);
const floors = Object.keys(FLOORS);
const upward = Object.entries(MODULES).flatMap(([module, { modules }]) =>
  modules.filter((other) => {
    const own = floorOf(module);
    return own !== undefined && floors.indexOf(floorOf(other.split('/')[0]!)!) > floors.indexOf(own);
  }),
);
row('imports of a floor above', upward.length);
const protocols = files.filter(({ path }) => /^src\/(?:openai|mcp|a2a|media)\//.test(path));
row(
  'files of protocols that import #pages',
  protocols.filter((file) => importsOf(file).some(({ specifier }) => specifier.startsWith('#pages'))).length,
);
const untested = Object.values(PATHS).filter(
  (path) => !path.endsWith('.ts') && !existsSync(join(ROOT, path.replace(/^src/, 'test'))),
);
row('modules without a test folder', untested.length === 0 ? 0 : `${untested.length} (${untested.join(', ')})`);
const circles = findCircles(files);
row('circles of files inside modules', circles.length);
if (values.circles) for (const circle of [...circles, ...folderCircles]) console.log(`    ${circle.join('\n      ')}`);

console.log('\nSize');
row('files of src', files.length);
row('  median of their lines', lengths[lengths.length >> 1]!);
row('  under 40 lines, without indexes and programs', short.length);
row('lines of src', sum(lengths));
row('lines of test', sum(readTree(['test'], ['.ts']).map(({ text }) => linesOf(text))));
row(
  'files of SQL, without migrations',
  readTree(['src'], ['.sql']).filter(({ path }) => !path.includes('/migrations/')).length,
);
const words = (text: string) => text.split(/\s+/).filter(Boolean).length;
row(
  'words of *.md',
  sum(
    readTree(['.'], ['.md'])
      .filter(({ path }) => !path.includes('node_modules/'))
      .map(({ text }) => words(text)),
  ),
);
row("words of the guide, without tables and developers' pages", sum(pagesOfQuestions.map(({ words }) => words)));
row('  of its longest page', pagesOfQuestions[0]!.words);
if (values.words) for (const page of pagesOfQuestions) console.log(`    ${page.path} ${page.words}`);
row('lines of .oxlintrc.json', linesOf(readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8')));
row('lines of bench', sum(readTree(['bench'], ['.ts']).map(({ text }) => linesOf(text))));

console.log('\nNames');
const apis = Object.entries(imports).map(([alias, path]) => {
  const lists = [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
  return { alias, names: sum(lists.map(([, list]) => list!.split(',').filter((name) => name.trim() !== '').length)) };
});
const largest = apis.toSorted((a, b) => b.names - a.names)[0]!;
row('names of the largest public API', `${largest.names} (${largest.alias})`);
const ofModule = new Map<string, number>();
for (const { alias, names } of apis) {
  const module = alias.slice(1).split('/')[0]!;
  ofModule.set(module, (ofModule.get(module) ?? 0) + names);
}
const [widest, most] = [...ofModule].toSorted(([, a], [, b]) => b - a)[0]!;
row('names of a module over all its public APIs, at most', `${most} (${widest})`);
const declared = new Map<string, Set<string>>();
for (const { path, text } of files)
  for (const [, name] of text.matchAll(/^(?:export )?(?:interface|type) (\w+)/gm))
    declared.set(name!, (declared.get(name!) ?? new Set()).add(path));
const shared = [...declared].filter(([, paths]) => paths.size > 2).toSorted(([, a], [, b]) => b.size - a.size);
row('types declared in more than two files', shared.length);
if (values.types) for (const [name, paths] of shared) console.log(`    ${name} ${paths.size}`);
row('names of the private dialect', sum(files.map((file) => dialectNames(file).length)));
row('casts of the result of a call', count(/\b(?:frame|settled|end|value)\.result as\b/g));
row('tests whether a value is a promise', count(/instanceof Promise\b/g));

console.log('\nDocstrings');
/** Words that say nothing, so a docstring of these and of the words of its name restates the name. */
const EMPTY = new Set('a an the of to in for with by its it and or is are this that one'.split(' '));
const stem = (word: string) => word.toLowerCase().replace(/(?:ing|ed|es|s)$/, '');
const docstrings = files.flatMap(({ text }) => [
  ...text.matchAll(
    /\/\*\*([^]*?)\*\/\s*(?:export |readonly |private |async |abstract |declare )*(?:const|let|function|class|interface|type|get|set)?\s*#?(\w+)/g,
  ),
]);
const restates = docstrings.filter(([, said, name]) => {
  const known = new Set(name!.split(/(?=[A-Z])|_/).map(stem));
  const spoken = said!.match(/[A-Za-z]+/g) ?? [];
  return spoken.every((word) => EMPTY.has(word.toLowerCase()) || known.has(stem(word)));
});
row('docstrings', docstrings.length);
row('  that restate the name', restates.length);
