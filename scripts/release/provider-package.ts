import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { closureOf } from './closure.ts';
import type { Manifest } from './manifest.ts';
import { LICENCE } from './prune-modules.ts';
import { stripped } from './strip-sources.ts';

/** Name of the package that contains only the provider's proxy, and of its command. */
const NAME = 'tollgate-provide';
const ENTRY = 'src/cli/provider-main.ts';

/** The members of a package's `package.json` that Node or npm reads. */
interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}
const READ_BY_NODE = ['name', 'version', 'license', 'type', 'main', 'module', 'exports', 'imports', 'browser'];

interface StagedPackage {
  readonly name: string;
  /** Number of files, including those of packages. */
  readonly files: number;
  readonly bytes: number;
  /** `name@version` of each package in it. */
  readonly packages: readonly string[];
}

/**
 * Copies the files that a provider's proxy may load into a folder, ready for `npm pack`. The list is computed from the
 * imports of its entry, so it has no gateway, database, chains or pages.
 */
export function stageProvider(checkout: string, stage: string, manifest: Manifest): StagedPackage {
  const { own, modules, packages } = closureOf(checkout, ENTRY);
  const put = (path: string, content: string) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), content);
  };
  const copy = (path: string, to = path) => {
    mkdirSync(dirname(join(stage, to)), { recursive: true });
    copyFileSync(join(checkout, path), join(stage, to));
  };
  for (const path of own)
    if (path.endsWith('.ts')) put(path.replace(/\.ts$/, '.js'), stripped(readFileSync(join(checkout, path), 'utf8')));
    else copy(path);
  for (const path of modules) copy(path);
  const known = new Set(packages.map((folder) => folder.replace(/^.*node_modules\//, '')));
  const within = (all: PackageFile['dependencies'] = {}) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => known.has(name)));
  const kept: string[] = [];
  for (const folder of packages) {
    const file = JSON.parse(readFileSync(join(checkout, folder, 'package.json'), 'utf8')) as PackageFile;
    const read = Object.fromEntries(Object.entries(file).filter(([name]) => READ_BY_NODE.includes(name)));
    put(join(folder, 'package.json'), JSON.stringify({ ...read, dependencies: within(file.dependencies) }, null, 2));
    for (const name of readdirSync(join(checkout, folder))) if (LICENCE.test(name)) copy(join(folder, name));
    kept.push(`${file.name}@${file.version}`);
  }
  copy('bin/tollgate.mjs', `bin/${NAME}.mjs`);
  copy('LICENSE');
  copy('scripts/release/provider-readme.md', 'README.md');
  put('package.json', `${JSON.stringify(providerManifest(manifest, own, within(manifest.dependencies)), null, 2)}\n`);
  return { name: NAME, files: own.length + modules.length, bytes: sizeOf(stage), packages: kept };
}

function providerManifest(
  manifest: Manifest,
  own: readonly string[],
  dependencies: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const imports = Object.entries(manifest.imports).filter(([, path]) => own.includes(path.replace('./', '')));
  return {
    name: NAME,
    version: manifest.version,
    description: "A provider's proxy: sells calls of your own models, tools and agents through a tollgate gateway",
    license: manifest.license,
    type: 'module',
    bin: { [NAME]: `bin/${NAME}.mjs` },
    imports: Object.fromEntries(imports.map(([name, path]) => [name, path.replace(/\.ts$/, '.js')])),
    engines: { node: '>=24' },
    dependencies,
    bundleDependencies: Object.keys(dependencies),
  };
}

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** The members of a CycloneDX list of components that are read here. */
export interface Parts {
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** The components of one package, filtered from the full list. */
export function partsOf(all: Parts, { name, packages }: Pick<StagedPackage, 'name' | 'packages'>): Parts {
  const components = all.components.filter((one) => packages.includes(`${one.name}@${one.version}`));
  const refs = new Set(components.map((one) => one['bom-ref']));
  return {
    ...all,
    metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => refs.has(ref)) })),
  };
}
