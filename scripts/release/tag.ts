// The tag of a release: on the commit that was built, with its section of CHANGELOG.md as the text. `npm run release --
// --tag` makes it after the build; `node scripts/release/tag.ts` makes it alone. Nothing is pushed: what is published
// is looked at before.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readManifest } from './manifest.ts';

interface ReleaseTag {
  readonly name: string;
  readonly commit: string;
  /** The tag is there, on this commit. */
  readonly exists: boolean;
  readonly text: string;
  /** How git signs it: options before the command. null without a key. */
  readonly signer: readonly string[] | null;
}

/**
 * The tag of the checkout's version for its last commit. Ends the process with the reason if the checkout has changes,
 * the changelog has no section with a date, or the tag is there on another commit. `key`: file of an SSH key that
 * signs; else the key of git's `user.signingKey`, if it has one.
 */
export function tagOf(checkout: string, key?: string): ReleaseTag {
  const git = gitIn(checkout);
  const { version } = readManifest(checkout);
  const name = `v${version}`;
  if (git('status', '--porcelain') !== '') fail('The checkout has changes that are not committed: commit them.');
  const commit = git('rev-parse', 'HEAD');
  const tagged = git(
    'for-each-ref',
    '--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)',
    `refs/tags/${name}`,
  );
  if (tagged !== '' && tagged !== commit)
    fail(
      `There is a tag ${name} on another commit, ${tagged.slice(0, 12)}; this one is ${commit.slice(0, 12)}. Set another version in package.json.`,
    );
  const text = `tollgate ${version}\n\n${sectionOf(readFileSync(join(checkout, 'CHANGELOG.md'), 'utf8'), version)}`;
  const ofFile = key === undefined ? null : ['-c', 'gpg.format=ssh', '-c', `user.signingKey=${resolve(key)}`];
  const ofGit = git('config', '--default', '', '--get', 'user.signingKey') === '' ? null : [];
  return { name, commit, exists: tagged !== '', text, signer: ofFile ?? ofGit };
}

/** Makes the tag, if it is not there. Returns what to tell. */
export function makeTag(checkout: string, { name, commit, exists, text, signer }: ReleaseTag): string {
  const git = gitIn(checkout);
  if (!exists)
    git(
      ...(signer ?? []),
      'tag',
      signer === null ? '--annotate' : '--sign',
      '--cleanup=verbatim',
      '--message',
      text,
      name,
      commit,
    );
  const how = exists ? 'was there already' : signer === null ? 'not signed: there is no key' : 'signed';
  return `${name} is ${commit.slice(0, 12)} (${how}). Publish it with: git push origin ${name}`;
}

/** The tag as a dry run tells it. */
export function describeTag({ name, commit, exists, text, signer }: ReleaseTag): string {
  const how = exists ? 'is there already' : signer === null ? 'would be made, not signed' : 'would be made and signed';
  return `${name} ${how}, on ${commit.slice(0, 12)}:\n\n${text}`;
}

/** The section of the version, without its heading. It needs a date. */
function sectionOf(changelog: string, version: string): string {
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

function gitIn(checkout: string): (...args: readonly string[]) => string {
  return (...args) => {
    const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: checkout, encoding: 'utf8' });
    return status === 0
      ? stdout.trim()
      : fail(`git ${args.join(' ').slice(0, 60)} failed: ${error?.message ?? stderr.trim()}`);
  };
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      checkout: { type: 'string', default: resolve(import.meta.dirname, '../..') },
      key: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help)
    console.log(
      'node scripts/release/tag.ts [--key FILE] [--dry-run] [--checkout FOLDER]\n\n' +
        '  Tags the last commit as v<version>. Nothing is pushed.\n' +
        "  --key FILE   signs with this SSH key; else with the key of git's user.signingKey, and without one not at all\n" +
        '  --dry-run    makes no tag: says what it would make\n' +
        '  --checkout   another checkout than this one',
    );
  else {
    const checkout = resolve(values.checkout);
    const tag = tagOf(checkout, values.key);
    console.log(values['dry-run'] ? describeTag(tag) : makeTag(checkout, tag));
  }
}
