// Prints the measures of the source by which it is kept readable: node scripts/measures.ts [--circles]
// --circles names the files of each circle.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findCircles } from '../test/architecture/circles.ts';
import { readTree, ROOT } from '../test/architecture/source.ts';

const { values } = parseArgs({ options: { circles: { type: 'boolean' } } });
const files = readTree(['src'], ['.ts']);
const { imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { imports: Record<string, string> };
const lengths = files.map(({ text }) => text.split('\n').length - 1).toSorted((a, b) => a - b);
/** Indexes and entries of threads may be short. */
const mayBeShort = (path: string) => /(?:\/index|\/compose|-program|-worker|^src\/(?:main|version))\.ts$/.test(path);
const short = files.filter(({ path, text }) => text.split('\n').length <= 40 && !mayBeShort(path));
const count = (pattern: RegExp) => files.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0);

function row(what: string, value: string | number): void {
  console.log(`${what.padEnd(52)} ${value}`);
}

row('files in src', files.length);
row('  median of their lines', lengths[lengths.length >> 1]!);
row('  under 40 lines, without indexes and programs', short.length);
row(
  'lines of src',
  lengths.reduce((sum, lines) => sum + lines, 0),
);
row(
  'files of SQL, without migrations',
  readTree(['src'], ['.sql']).filter(({ path }) => !path.includes('/migrations/')).length,
);

const apis = Object.values(imports).map((path) => {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
  return { path, names: lists.flatMap(([, list]) => list!.split(',').filter((name) => name.trim() !== '')).length };
});
const largest = apis.toSorted((a, b) => b.names - a.names)[0]!;
row('largest public API, names', `${largest.names} (${largest.path})`);
row('casts of the result of a call', count(/\b(?:frame|settled|end|value)\.result as\b/g));
row('tests whether a value is a promise', count(/instanceof Promise\b/g));

const circles = findCircles(files);
row('circles inside modules', circles.length);
row('  of more than two files', circles.filter((circle) => circle.length > 2).length);
if (values.circles) for (const circle of circles) console.log(`    ${circle.join('\n      ')}`);
