// `npm run release`: makes the packages with their component lists (SBOM) and checksums in dist/release, from a clean
// working tree.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Bundle, GATEWAY } from './bundle.ts';
import { stageWithNode, writeExecutable } from './executables.ts';
import type { SystemPackage } from './debian.ts';
import { writeImage } from './image.ts';
import { libraryFor } from './library.ts';
import { packageManifest, readManifest } from './manifest.ts';
import { isPlatform, nodeFor, type Platform, type PlatformNode, PLATFORMS, requireTestedNode } from './nodes.ts';
import { type Parts, partsOf, withoutChance, withOthers } from './parts.ts';
import { provenanceOf, systemUrl } from './provenance.ts';
import { PROVIDER_NAME, stageProvider } from './provider-package.ts';
import { installedIn, pruneFiles, pruneModules, versioned, versionsOf } from './prune-modules.ts';
import { reachedFiles } from './reached-files.ts';
import { COMMIT_FILE } from '../../src/foundation/version.ts';
import { sha256Of } from './tar.ts';
import { stageSources } from './stage-sources.ts';
import { describeTag, makeTag, tagOf } from './tag.ts';

const CHECKOUT = resolve(import.meta.dirname, '..', '..');

const { values } = parseArgs({
  allowNegative: true,
  options: {
    out: { type: 'string' },
    dirty: { type: 'boolean', default: false },
    platforms: { type: 'string' },
    image: { type: 'boolean', default: true },
    key: { type: 'string' },
    tag: { type: 'boolean', default: false },
    'dry-run': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  console.log(
    'npm run release -- [--out FOLDER] [--key FILE] [--platforms LIST] [--no-image] [--tag [--dry-run]] [--dirty]\n\n' +
      '  --out FOLDER where the files go, an empty folder or a new one; else dist/release, which is made anew\n' +
      '  --key FILE   signs the checksums with this SSH key (ssh-keygen -Y sign)\n' +
      `  --platforms LIST the platforms of the executables; else all: ${PLATFORMS.join(',')}. Empty for none\n` +
      '  --no-image   builds no image. It and the executables for Linux have packages of Debian, by apt-get and dpkg-deb\n' +
      '  --tag        tags the commit that was built as v<version>, from a clean checkout only: signed with the key of\n' +
      "               --key or of git's user.signingKey, else not signed. It refuses if the tag is on another commit\n" +
      '  --dry-run    builds nothing: says which tag --tag would make\n' +
      '  --dirty      builds although the checkout has changes that are not committed',
  );
  process.exit(0);
}

const OUT = values.out === undefined ? join(CHECKOUT, 'dist', 'release') : resolve(values.out);
const STAGE = join(OUT, 'stage');
const PROVIDER_STAGE = join(OUT, 'stage-provide');
const NODES = join(OUT, 'nodes');
const manifest = readManifest(CHECKOUT);
const platforms = readPlatforms();
if (values.tag && values.dirty) refuse('--tag is for a clean checkout: leave --dirty out.');
if (values['dry-run'] && !values.tag) refuse('--dry-run is for --tag: npm run release -- --tag --dry-run');
// Before the build, which takes a minute.
const tag = values.tag ? tagOf(CHECKOUT, values.key) : null;
if (tag !== null && values['dry-run']) {
  console.log(describeTag(tag));
  process.exit(0);
}
if (platforms.length > 0 || values.image) requireTestedNode();
if (!values.dirty) requireCleanTree();
if (values.out === undefined) rmSync(OUT, { recursive: true, force: true });
else requireEmpty(OUT);
for (const stage of [STAGE, PROVIDER_STAGE]) mkdirSync(stage, { recursive: true });

const bundle = await stageSources(CHECKOUT, STAGE, GATEWAY);
tellBundle('sources', bundle);
const provider = await stageProvider(CHECKOUT, PROVIDER_STAGE, manifest);
tellBundle("provider's", provider);
step('commit', writeCommit);
step('other files', copyRest);
step('web pages', () => {
  run(process.execPath, [join(CHECKOUT, 'web', 'build.mjs'), join(STAGE, 'dist', 'web')], CHECKOUT);
  return 'dist/web';
});
step('packages', installPackages);
const reached = await reachedFiles(STAGE, bundle.loads);
step('reached', () => `${(pruneFiles(join(STAGE, 'node_modules'), reached) / 1e6).toFixed(1)} MB of the packages`);
step('loads', loadAll);
step('tarball', () => pack(STAGE, manifest.name));
step("provider's", () => pack(PROVIDER_STAGE, PROVIDER_NAME));
const nodes: PlatformNode[] = [];
const ofExecutables: SystemPackage[] = [];
for (const platform of platforms) step(platform, () => writePrograms(platform));
let ofImage: readonly SystemPackage[] = [];
if (values.image) step('image', writeOwnImage);
step('lists of parts', writeParts);
step('provenance', writeProvenance);
step('checksums', writeChecksums);
rmSync(NODES, { recursive: true, force: true });
if (tag !== null) step('tag', tagBuilt);
console.log(`\n${OUT}`);
for (const name of released()) console.log(`  ${name}`);

function tellBundle(name: string, { files, bundled }: Bundle): void {
  console.log(`${name.padEnd(14)} ${files.length} files, with ${bundled.length} packages`);
}

function step(name: string, work: () => string): string {
  const begun = performance.now();
  const told = work();
  console.log(`${name.padEnd(14)} ${told}  (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  return told;
}

/** The files of the release, without the folders from which the packages are made. */
function released(): readonly string[] {
  const entries = readdirSync(OUT, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** Tags the commit that the files name, if the checkout is still at it. */
function tagBuilt(): string {
  const now = tagOf(CHECKOUT, values.key);
  if (now.commit !== commitOf())
    refuse('The checkout has another commit than the one that was built: no tag was made.');
  return makeTag(CHECKOUT, now);
}

function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}

function requireCleanTree(): void {
  const changed = run('git', ['status', '--porcelain'], CHECKOUT).trim();
  if (changed === '') return;
  refuse(`The checkout has changes that are not committed:\n${changed}\nCommit them, or give --dirty.`);
}

function readPlatforms(): readonly Platform[] {
  if (values.platforms === undefined) return PLATFORMS;
  const names = values.platforms.split(',').filter((name) => name !== '');
  const wrong = names.find((name) => !isPlatform(name));
  if (wrong === undefined) return names.filter(isPlatform);
  return refuse(`There is no platform ${wrong}: one of ${PLATFORMS.join(', ')}`);
}

/** The executables of both packages for a platform. */
function writePrograms(platform: Platform): string {
  const node = nodeFor(platform, { checkout: CHECKOUT, work: mkdirs(NODES) });
  nodes.push(node);
  const library = libraryFor(node, mkdirs(join(NODES, `library-${platform}`)));
  ofExecutables.push(...(library?.packages ?? []));
  const names = [manifest.name, PROVIDER_NAME].map((command) => {
    const { version } = manifest;
    const name = `${command}-${version}-${platform}`;
    const tarball = join(OUT, `${command}-${version}.tgz`);
    writeExecutable({ tarball, command, version, node, library }, { stage: join(NODES, name), out: join(OUT, name) });
    return name;
  });
  return names.join(', ');
}

function writeOwnImage(): string {
  const { version, name: command } = manifest;
  const platform = `${process.platform}-${process.arch}`;
  if (!isPlatform(platform)) throw new Error(`There is no image for ${platform}: give --no-image`);
  const node = nodeFor(platform, { checkout: CHECKOUT, work: mkdirs(NODES) });
  if (!nodes.includes(node)) nodes.push(node);
  const program = join(NODES, 'image-program');
  stageWithNode({ tarball: join(OUT, `${command}-${version}.tgz`), command, version, node }, program);
  const name = `${command}-${version}-oci-${process.arch}.tar`;
  ofImage = writeImage({
    program,
    version,
    commit: commitOf(),
    work: mkdirs(join(NODES, 'image')),
    out: join(OUT, name),
  });
  return name;
}

function mkdirs(folder: string): string {
  mkdirSync(folder, { recursive: true });
  return folder;
}

function writeProvenance(): string {
  const name = `${manifest.name}-${manifest.version}.intoto.json`;
  const files = released().map((file) => [file, sha256Of(join(OUT, file))] as const);
  const lock = sha256Of(join(CHECKOUT, 'package-lock.json'));
  const system = [...new Map([...ofExecutables, ...ofImage].map((one) => [one.sha256, one])).values()];
  const built = { version: manifest.version, commit: commitOf(), files, lock, nodes, system };
  writeFileSync(join(OUT, name), `${JSON.stringify(provenanceOf(built), null, 2)}\n`);
  return name;
}

/** The commit that the files are built from. null where there is no git. */
function commitOf(): string | null {
  const file = join(STAGE, COMMIT_FILE);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/** Both packages name the commit. Where there is no git, as while an image is built, they name the version alone. */
function writeCommit(): string {
  const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: CHECKOUT, encoding: 'utf8' });
  const { status, stdout } = git('rev-parse', 'HEAD');
  if (status !== 0) return 'none: there is no git';
  const commit = stdout.trim() + (git('status', '--porcelain').stdout.trim() === '' ? '' : '-changed');
  for (const stage of [STAGE, PROVIDER_STAGE]) writeFileSync(join(stage, COMMIT_FILE), `${commit}\n`);
  return commit;
}

/** Refuses a folder with files, because they may belong to somebody else. */
function requireEmpty(folder: string): void {
  if (!existsSync(folder) || readdirSync(folder).length === 0) return;
  refuse(`${folder} is not empty. Name an empty folder, or a new one.`);
}

function copyRest(): string {
  for (const name of ['LICENSE', 'README.md', 'CHANGELOG.md']) copyFileSync(join(CHECKOUT, name), join(STAGE, name));
  cpSync(join(CHECKOUT, 'docs'), join(STAGE, 'docs'), { recursive: true });
  mkdirSync(join(STAGE, 'bin'));
  copyFileSync(join(CHECKOUT, 'bin', 'tollgate.mjs'), join(STAGE, 'bin', 'tollgate.mjs'));
  return 'bin, docs, README.md, LICENSE, CHANGELOG.md';
}

/** Installs the production packages of the lock file, and keeps those that the bundle needs beside it. */
function installPackages(): string {
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(CHECKOUT, name), join(STAGE, name));
  run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], STAGE);
  const modules = join(STAGE, 'node_modules');
  pruneModules(modules, bundle.external);
  rmSync(join(STAGE, 'package-lock.json'));
  rmSync(join(STAGE, '.npmrc'));
  writeFileSync(
    join(STAGE, 'package.json'),
    `${JSON.stringify(packageManifest(manifest, versionsOf(modules, bundle.external)), null, 2)}\n`,
  );
  return `${installedIn(modules).length} packages`;
}

/** Loads all that the bundle may ever load, so a file that was deleted but is needed ends the release. */
function loadAll(): string {
  const loads = bundle.loads.filter(({ specifier }) => !specifier.includes('${'));
  const program = `import { createRequire } from 'node:module';
const require = createRequire(process.cwd() + '/');
for (const { by, specifier } of ${JSON.stringify(loads)}) by === 'require' ? require(specifier) : await import(specifier);
process.exit(0);`;
  run(process.execPath, ['--input-type=module', '--eval', program], STAGE);
  return `${loads.length} modules of packages load`;
}

function pack(folder: string, name: string): string {
  run('npm', ['pack', '--pack-destination', OUT], folder);
  return `${name}-${manifest.version}.tgz`;
}

function writeParts(): string {
  // Without --omit=dev, which also leaves out what both need. What is not in a package is left out below.
  const told = run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], CHECKOUT);
  const all = JSON.parse(told) as Parts;
  const write = (name: string, packages: readonly string[]) => {
    const parts = partsOf(all, name, packages);
    writeList(`${name}-${manifest.version}.cdx.json`, parts);
    // Of the executables, and of the image. Node has the same version in all of them.
    const [node] = nodes;
    const runtime =
      node === undefined ? [] : [{ name: 'node', version: node.version, purl: `pkg:npm/${node.name}@${node.version}` }];
    const writeWith = (kind: string, system: readonly SystemPackage[]) => {
      const others = system.map((one) => ({ name: one.name, version: one.version, purl: systemUrl(one) }));
      writeList(`${name}-${manifest.version}-${kind}.cdx.json`, withOthers(parts, [...runtime, ...others]));
    };
    if (platforms.length > 0) writeWith('executable', ofExecutables);
    if (values.image && name === manifest.name) writeWith('oci', ofImage);
    return parts.components.length;
  };
  const inBundle = ({ bundled }: Bundle) => bundled.map((folder) => versioned(join(CHECKOUT, folder)));
  const ofGateway = write(manifest.name, [...installedIn(join(STAGE, 'node_modules')), ...inBundle(bundle)]);
  const ofProvider = write(PROVIDER_NAME, inBundle(provider));
  return `${ofGateway} packages of the gateway, ${ofProvider} of the provider's proxy`;
}

function writeList(name: string, parts: Parts): void {
  writeFileSync(join(OUT, name), `${JSON.stringify(withoutChance(parts), null, 2)}\n`);
}

function writeChecksums(): string {
  const lines = released().map((name) => `${sha256Of(join(OUT, name))}  ${name}\n`);
  writeFileSync(join(OUT, 'SHA256SUMS'), lines.join(''));
  if (values.key === undefined) return 'SHA256SUMS, not signed: give --key to sign it';
  run('ssh-keygen', ['-Y', 'sign', '-f', resolve(values.key), '-n', 'tollgate-release', join(OUT, 'SHA256SUMS')], OUT);
  return 'SHA256SUMS and its signature SHA256SUMS.sig';
}

function run(program: string, args: readonly string[], cwd: string): string {
  const ended = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (ended.status === 0) return ended.stdout;
  console.error(`${program} ${args.join(' ')} failed:\n${ended.error?.message ?? ended.stderr}`);
  return process.exit(1);
}
