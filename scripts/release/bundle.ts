import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import type { Load } from './reached-files.ts';

/** A program that is bundled. */
export interface Program {
  /** The module that starts it, relative to the checkout. Its file is at the same path in the package. */
  readonly main: string;
  /** The folder below `src/bundle` for the other files of its code. */
  readonly folder: string;
  /** The packages that are bundled, with all that they import. */
  readonly packages: 'all' | ReadonlySet<string>;
  /** Whether its modules read SQL, Lua and pictures of `src`, which the package then has. */
  readonly readsFiles: boolean;
}

export const GATEWAY: Program = {
  main: 'src/main.ts',
  folder: 'gateway',
  // Those that a start loads. Each of the others is either loaded by few gateways, or reads files beside its modules,
  // or is native. They stay installed as they are.
  packages: new Set([
    '@fastify/cors',
    'bs58',
    'commander',
    'fastify',
    'json-rpc-2.0',
    'pino',
    'prom-client',
    'smol-toml',
    'undici',
    'ws',
  ]),
  readsFiles: true,
};

/** The provider's proxy alone. None of its packages is native or reads files, so none must be installed. */
export const PROVIDER: Program = {
  main: 'src/program/cli/provider-main.ts',
  folder: 'provider',
  packages: 'all',
  readsFiles: false,
};

/** What bundled packages import at most later, or starts threads from its own files. These stay installed. */
const INSTALLED: ReadonlySet<string> = new Set([
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  '@opentelemetry/api',
  'bufferutil',
  'fast-json-stringify',
  'light-my-request',
  'thread-stream',
  'utf-8-validate',
]);

/** Programs of threads and processes. Each is started by its path, so it is a file of its own. */
const PROGRAM = /new URL\('(\.{1,2}\/[^']+)\.ts', import\.meta\.url\)/g;
/** The names of packages that are required or looked up at run time. */
const REQUIRED = /createRequire\(import\.meta\.url\)(?:\.resolve)?\(['`]([^'`]+)['`]\)/g;
const ADDRESS = 'import.meta.url';
/**
 * What a bundle replaces in our own modules: calls of `require` for a package that is bundled, also by a name that a
 * module gives to `require`; names of programs; and the address of the module.
 */
const REPLACED =
  /createRequire\(import\.meta\.url\)\('([^']+)'\)|const (\w+) = createRequire\(import\.meta\.url\);|(?<=new URL\()(?<program>'\.{1,2}\/[^']+)\.ts'(?=, import\.meta\.url\))|import\.meta\.url/g;

/** Stands for the relative path from a file of the bundle to `src`, which is known only when the files are cut. */
const TO_SRC = '/path-to-src/';
/** The folder of the package of a module. */
const PACKAGE_FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
/** Makes stack traces name the sources. Each program imports it first. */
const SOURCE_LINES = 'source-lines.js';

export interface Bundle {
  /** Names of the written files of code, relative to the package. */
  readonly files: readonly string[];
  /** Packages that must be installed beside the bundle. Those that are optional and not installed are left out. */
  readonly external: readonly string[];
  /** What it loads of them. */
  readonly loads: readonly Load[];
  /** Folders of the packages of which the bundle has modules, relative to the checkout. */
  readonly bundled: readonly string[];
}

/**
 * Writes the sources of a program as few files of JavaScript into `stage/src`. Two bundles share no module: that of the
 * process, and that of the programs of threads, which would otherwise load parts of the gateway. Inside of a bundle,
 * code that not all commands need is in files of its own. Each module sees the address that its source has in the
 * package, so it finds the files beside it.
 */
export async function bundleSources(checkout: string, stage: string, program: Program): Promise<Bundle> {
  const noted = new Map<string, Load>();
  const plugin = asInPackage(checkout, program.packages, noted);
  const main = await write({ checkout, stage, plugin, entries: [program.main], shared: program.folder });
  const entries = startedBy(checkout, main);
  const threads = await write({ checkout, stage, plugin, entries, shared: 'threads' });
  const missing = startedBy(checkout, threads).filter((path) => !entries.includes(path));
  if (missing.length > 0)
    throw new Error(`Only programs start ${missing.join(', ')}, so the package would not have it`);
  const chunks = [...main, ...threads];
  const modules = chunks.flatMap((chunk) => modulesOf(checkout, chunk));
  const folders = modules.flatMap((id) => PACKAGE_FOLDER.exec(id)?.[0] ?? []);
  const isInstalled = (name: string) => existsSync(join(checkout, 'node_modules', name));
  const loads = [...noted.values()].filter(({ specifier }) => isInstalled(packageOf(specifier)));
  return {
    files: chunks.map(({ fileName }) => fileName),
    external: [...new Set(loads.map(({ specifier }) => packageOf(specifier)))].toSorted(),
    loads,
    bundled: [...new Set(folders)].toSorted(),
  };
}

/** Paths relative to the checkout. */
const modulesOf = (checkout: string, { moduleIds }: OutputChunk): readonly string[] =>
  moduleIds.map((id) => posixPath(relative(checkout, id)));

/** Modules that these start by their path as threads or processes, relative to the checkout. */
function startedBy(checkout: string, chunks: readonly OutputChunk[]): readonly string[] {
  const found = new Set<string>();
  for (const path of chunks.flatMap((chunk) => modulesOf(checkout, chunk)).filter((id) => id.startsWith('src/'))) {
    const code = readFileSync(join(checkout, path), 'utf8');
    for (const [, name] of code.matchAll(PROGRAM)) found.add(posixPath(join(dirname(path), `${name!}.ts`)));
  }
  return [...found].toSorted();
}

interface Written {
  readonly checkout: string;
  readonly stage: string;
  readonly plugin: Plugin;
  /** Modules, relative to the checkout. The file of each is at the same path in the package. */
  readonly entries: readonly string[];
  /** The folder below `src` for files that several entries share, or that are loaded later. */
  readonly shared: string;
}

async function write({ checkout, stage, plugin, entries, shared }: Written): Promise<readonly OutputChunk[]> {
  const input = Object.fromEntries(entries.map((path) => [path.replace(/\.ts$/, ''), join(checkout, path)]));
  const bundle = await rolldown({
    cwd: checkout,
    input,
    platform: 'node',
    plugins: [plugin],
    // The plugin edits modules with it, so maps stay right.
    experimental: { nativeMagicString: true },
    // Checkouts load some packages later than a bundle does, which has them anyway.
    checks: { ineffectiveDynamicImport: false },
    onLog(level, log, next) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
      next(level, log);
    },
  });
  const { output } = await bundle.write({
    dir: stage,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: `src/bundle/${shared}/[name].js`,
    sourcemap: true,
    sourcemapExcludeSources: true,
    // The addresses that the sources would have in the package.
    sourcemapPathTransform: (source, map) => {
      const folder = dirname(relative(stage, map));
      return posixPath(relative(folder, relative(checkout, resolve(dirname(map), source))));
    },
    banner: ({ isEntry, fileName }) => (isEntry ? `import '${toSrc(fileName)}${SOURCE_LINES}';` : ''),
  });
  await bundle.close();
  return output.filter((file) => file.type === 'chunk');
}

/** Makes modules find in the package what they find in the checkout, and leaves out packages that stay installed. */
function asInPackage(checkout: string, packages: Program['packages'], noted: Map<string, Load>): Plugin {
  const src = join(checkout, 'src', sep);
  const isOwn = (id: string) => id.startsWith(src);
  const isBundled = (name: string) => packages === 'all' || packages.has(name);
  const mustStay = (name: string, from: string) => (isOwn(from) ? !isBundled(name) : INSTALLED.has(name));
  const noteInstalled = (load: Load, from: string) => {
    const name = packageOf(load.specifier);
    const owner = PACKAGE_FOLDER.exec(posixPath(from))?.[0];
    if (owner && existsSync(join(owner, 'node_modules', name)))
      throw new Error(`${from} has its own version of ${name}, which the bundle would not find`);
    noted.set(`${load.by} ${load.specifier}`, load);
  };
  return {
    name: 'as-in-the-package',
    resolveId(specifier, from, { kind }) {
      if (from === undefined || /^[./#\0]/.test(specifier) || isBuiltin(specifier)) return null;
      const name = packageOf(specifier);
      if (!mustStay(name, from)) return null;
      noteInstalled({ by: kind === 'require-call' ? 'require' : 'import', specifier }, from);
      return { id: specifier, external: true };
    },
    transform(code, id, { magicString }) {
      if (!isOwn(id)) return null;
      const edited = magicString!;
      for (const [, specifier] of code.matchAll(REQUIRED))
        if (!isBundled(packageOf(specifier!))) noteInstalled({ by: 'require', specifier: specifier! }, id);
      for (const [at, text] of editsOf(code, posixPath(relative(src, id)), isBundled)) edited.overwrite(...at, text);
      return edited.hasChanged() ? { code: edited } : null;
    },
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === 'chunk') file.code = file.code.replaceAll(TO_SRC, toSrc(file.fileName));
    },
  };
}

type Edit = readonly [at: [start: number, end: number], text: string];

/** What is replaced in a module of our own, whose path below `src` is given. */
function editsOf(code: string, path: string, isBundled: (name: string) => boolean): readonly Edit[] {
  const edits: Edit[] = [];
  let load: string | undefined;
  for (const { 0: whole, 1: required, 2: named, index, groups } of code.matchAll(REPLACED)) {
    const at: Edit[0] = [index, index + whole.length];
    if (required && isBundled(packageOf(required))) edits.push([at, `require('${required}')`]);
    else if (named) {
      load = named;
      edits.push([at, ' ']);
    } else if (groups!['program']) edits.push([at, `${groups!['program']}.js'`]);
    else {
      const start = index + whole.indexOf(ADDRESS);
      const own = path.replace(/\.ts$/, '.js');
      edits.push([[start, start + ADDRESS.length], `new URL('${TO_SRC}${own}', ${ADDRESS}).href`]);
    }
  }
  if (load !== undefined)
    for (const { 0: whole, index } of code.matchAll(new RegExp(`\\b${load}\\('`, 'g')))
      edits.push([[index, index + whole.length], "require('"]);
  return edits;
}

/** The relative path from a file of the package to `src`. */
const toSrc = (file: string): string =>
  `${posix.relative(posix.dirname(file), 'src') || '.'}/`.replace(/^(?!\.)/, './');

export const packageOf = (specifier: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0];

const posixPath = (path: string): string => path.split(sep).join('/');
