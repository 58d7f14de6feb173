import { readFileSync, statSync } from 'node:fs';
import { createRequire, findPackageJSON, isBuiltin } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { blanked } from './strip-sources.ts';

/** What a program needs: files of the checkout, by their paths from its root. */
export interface Closure {
  /** Below `src/`: modules, and what they start or read by `new URL`. */
  readonly own: readonly string[];
  /** Below `node_modules/`: the modules of packages, without each package's `package.json`. */
  readonly modules: readonly string[];
  /** Folders of the packages that `modules` belong to. */
  readonly packages: readonly string[];
}

/** Names of modules in imports, `import()`, `require()`, `new URL()`, and of files that are read beside a module. */
const NAMED =
  /(?:\bfrom|\bimport|\bimport\(|\bURL\(|\(import\.meta\.url,|(\brequire\(|createRequire\(import\.meta\.url\)\())\s*(['"])((?:\.{1,2}\/|[@#\w])[@#\w./-]*)\2/g;

/**
 * All files that a program may load, from its entry on, whether at its start or later: modules of ours as the package
 * has them (types are gone), and modules of packages. A package's module that is not installed is an optional one.
 */
export function closureOf(checkout: string, entry: string): Closure {
  const { imports } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    readonly imports: Readonly<Record<string, string>>;
  };
  const seen = new Set<string>();
  const todo = [join(checkout, entry)];
  for (let file = todo.pop(); file !== undefined; file = todo.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (/\.[cm]?[jt]s$/.test(file)) todo.push(...namedBy(file, (alias) => imports[alias], checkout));
  }
  const paths = [...seen].map((file) => relative(checkout, file).split(sep).join('/')).toSorted();
  const modules = paths.filter((path) => path.startsWith('node_modules/'));
  return {
    own: paths.filter((path) => path.startsWith('src/')),
    modules,
    packages: [...new Set(modules.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)![0]))].toSorted(),
  };
}

/** Files that a module names. */
function namedBy(file: string, aliased: (alias: string) => string | undefined, checkout: string): readonly string[] {
  const isOwn = file.endsWith('.ts');
  const text = readFileSync(file, 'utf8');
  const code = withoutComments(isOwn ? blanked(text) : text);
  const found: string[] = [];
  for (const [, required, , name] of code.matchAll(NAMED)) {
    if (isBuiltin(name!)) continue;
    const alias = isOwn ? aliased(name!) : undefined;
    const target = alias
      ? join(checkout, alias)
      : required
        ? byRequire(name!, file)
        : name!.startsWith('.')
          ? join(dirname(file), name!)
          : byImport(name!, file);
    if (target !== null && statSync(target, { throwIfNoEntry: false })?.isFile()) found.push(target);
    else if (!required) throw new Error(`${relative(checkout, file)} names ${name}, which is not there`);
  }
  return found;
}

/** Block comments, and lines that are comments: packages show imports in them. */
const withoutComments = (code: string): string => code.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');

/** null for a module that is not installed: programs may do without. */
function byRequire(name: string, from: string): string | null {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return null;
  }
}

/** `import.meta.resolve` looks from here: a package that has a version of its own of another one is not understood. */
function byImport(name: string, from: string): string {
  const path = fileURLToPath(import.meta.resolve(name));
  const nearest = findPackageJSON(name, pathToFileURL(from));
  if (nearest === undefined || !path.startsWith(dirname(nearest)))
    throw new Error(`${from} has its own version of ${name}`);
  return path;
}
