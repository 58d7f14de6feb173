// `node scripts/release/tag.ts`: tags the commit as a release, with its section of CHANGELOG.md as the text. It pushes
// nothing: what is published is looked at before.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readManifest } from './manifest.ts';

const { values } = parseArgs({
  options: {
    checkout: { type: 'string', default: resolve(import.meta.dirname, '../..') },
    unsigned: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  console.log(
    'node scripts/release/tag.ts [--unsigned] [--checkout FOLDER]\n\n' +
      '  Tags the commit as v<version>. Nothing is pushed.\n' +
      '  --unsigned   without a signature of git; else the key of git config user.signingKey signs\n' +
      '  --checkout   another checkout than this one',
  );
  process.exit(0);
}

const checkout = resolve(values.checkout);
const { version } = readManifest(checkout);
const tag = `v${version}`;
if (git('status', '--porcelain').trim() !== '') fail('The checkout has changes that are not committed: commit them.');
if (git('tag', '--list', tag).trim() !== '') fail(`There is a tag ${tag}: set another version in package.json.`);
const text = sectionOf(readFileSync(join(checkout, 'CHANGELOG.md'), 'utf8'));
git(
  'tag',
  values.unsigned ? '--annotate' : '--sign',
  '--cleanup=verbatim',
  '--message',
  `tollgate ${version}\n\n${text}`,
  tag,
);
console.log(`${tag} is ${git('rev-parse', '--short=12', 'HEAD').trim()}. Publish it with: git push origin ${tag}`);

/** The section of the version, without its heading. It needs a date. */
function sectionOf(changelog: string): string {
  const [heading, ...rest] =
    changelog
      .split(/^(?=## )/m)
      .find((part) => part.startsWith(`## ${version} (`))
      ?.split('\n') ?? [];
  if (heading === undefined) return fail(`CHANGELOG.md has no section "## ${version} (<date>)": write it.`);
  if (!/ \(\d{4}-\d{2}-\d{2}\)$/.test(heading))
    return fail(
      `CHANGELOG.md has "${heading}": write the date in the place of what is in the brackets, as 2026-01-31.`,
    );
  return `${rest.join('\n').trim()}\n`;
}

function git(...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: checkout, encoding: 'utf8' });
  return status === 0 ? stdout : fail(`git ${args[0]} failed: ${error?.message ?? stderr.trim()}`);
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
