import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { rolldown } from 'rolldown';
import { packageOf } from './bundle.ts';

/** How a bundle loads a part of an installed package: by `import` or `require`, for which packages have two files. */
export interface Load {
  readonly by: 'import' | 'require';
  /** Name of the package, with a path in it if there is one. */
  readonly specifier: string;
}

/** A module that loads what it computes, or lets others `require`. Nobody knows which files of its package are read. */
const COMPUTED =
  /\b(?:require|import)\(\s*(?!\/\*|['"`)]|await\b|new URL)|[(,=]\s*require\s*[,;)]|\b(?:__dirname|import\.meta\.url)\b/;

export interface Reached {
  /** Modules that the loads bring in, directly or through others. Absolute paths. */
  readonly files: ReadonlySet<string>;
  /** Folders of packages of which a module computes what it loads or reads. All of their files are needed. */
  readonly whole: ReadonlySet<string>;
}

/** The files of `stage/node_modules` that the loads of a bundle reach. Throws if one of the loads finds none. */
export async function reachedFiles(stage: string, loads: readonly Load[]): Promise<Reached> {
  const files = new Set<string>();
  const whole = new Set<string>();
  const modules = join(stage, 'node_modules', sep);
  const entries = { import: join(stage, 'loads.mjs'), require: join(stage, 'loads.cjs') };
  for (const kind of ['import', 'require'] as const) {
    const own = loads.filter(({ by, specifier }) => by === kind && !specifier.includes('${'));
    writeFileSync(entries[kind], own.map(({ specifier }) => `${kind}(${JSON.stringify(specifier)});\n`).join(''));
  }
  for (const { specifier } of loads) if (specifier.includes('${')) whole.add(join(modules, packageOf(specifier)));
  const bundle = await rolldown({
    cwd: stage,
    input: Object.values(entries),
    platform: 'node',
    treeshake: false,
    onLog(_level, { code, message, id }) {
      if (code === 'UNRESOLVED_IMPORT' && (id === undefined || !id.startsWith(modules))) throw new Error(message);
    },
    // Node looks for these; a bundler's own names would lead to files that Node does not load.
    resolve: { conditionNames: ['node', 'node-addons', 'module-sync'], mainFields: ['main'] },
    plugins: [
      {
        name: 'reached',
        load(id) {
          const path = id.replace(/\?.*$/, '');
          if (!path.startsWith(modules)) return null;
          files.add(path);
          if (/\.[cm]?js$/.test(path) && COMPUTED.test(readFileSync(path, 'utf8'))) whole.add(packageFolder(path));
          return null;
        },
      },
    ],
  });
  await bundle.generate({ format: 'esm' });
  await bundle.close();
  for (const entry of Object.values(entries)) rmSync(entry);
  return { files, whole };
}

/** The folder of the package that has the file. */
const packageFolder = (path: string): string => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)![0];
