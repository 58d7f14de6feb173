import { readFileSync, statSync } from 'node:fs';
import { createRequire, findPackageJSON, isBuiltin } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { blanked } from './strip-sources.ts';

/** The files that a program needs, as paths from the root of the checkout. */
export interface Closure {
  /** Files below `src/`: modules, and files that modules load or read with `new URL`. */
  readonly own: readonly string[];
  /** Files below `node_modules/`: modules of packages, without each package's `package.json`. */
  readonly modules: readonly string[];
  /** Folders of the packages with these modules. */
  readonly packages: readonly string[];
}

/**
 * Finds the module names in imports, `import()`, `require()` and `new URL()`, and the names of files that are read
 * beside a module.
 */
const NAMED =
  /(?:\bfrom|\bimport|\bimport\(|\bURL\(|\(import\.meta\.url,|(\brequire\(|createRequire\(import\.meta\.url\)\())\s*(['"])((?:\.{1,2}\/|[@#\w])[@#\w./-]*)\2/g;

/**
 * Finds all files that a program may load from its entry on, at its start or later. Our own modules are searched in the
 * form that the package has, without types. A package's module that isn't installed counts as optional.
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

/** Returns the files that a module names. */
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

/** Removes block comments and comment lines, because packages show imports in them. */
const withoutComments = (code: string): string => code.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');

/** Returns null if the module isn't installed, because it may be optional. */
function byRequire(name: string, from: string): string | null {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return null;
  }
}

/**
 * `import.meta.resolve` resolves from this file's folder. So this throws if a package has another version of a
 * dependency in its own `node_modules`.
 */
function byImport(name: string, from: string): string {
  const path = fileURLToPath(import.meta.resolve(name));
  const nearest = findPackageJSON(name, pathToFileURL(from));
  if (nearest === undefined || !path.startsWith(dirname(nearest)))
    throw new Error(`${from} has its own version of ${name}`);
  return path;
}
