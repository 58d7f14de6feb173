import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MODULES } from './import-rules.ts';
import { ROOT } from './source.ts';

/** Packages that only some modules may import, as the linter's patterns name them. */
const PACKAGES = [...new Set(Object.values(MODULES).flatMap(({ packages }) => packages))];

const asPattern = (name: string): string =>
  name.endsWith('/*') ? `${name.slice(0, -1)}.*` : `${name.replaceAll('.', '\\.')}(/|$)`;

interface Pattern {
  readonly regex: string;
  readonly message: string;
}

const WITHOUT_FOLDER: ReadonlySet<string> = new Set(['main', 'version', 'errors']);

/**
 * Names of folders in a module. A relative path to one of them stays in the module, although a module has the same
 * name.
 */
const foldersOf = (module: string): ReadonlySet<string> =>
  new Set(
    readdirSync(join(ROOT, 'src', module), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name),
  );

/** What the linter refuses in files of a module, so that an editor shows it at once: the module's row of the table. */
export function lintPatterns(module: string, aliases: readonly string[]): readonly Pattern[] {
  const { modules, packages } = MODULES[module]!;
  const names = aliases.map((alias) => alias.slice(1));
  const foreign = names.filter((name) => !modules.includes(name));
  const inside = foldersOf(module);
  const folders = Object.keys(MODULES).filter(
    (name) => name !== module && !WITHOUT_FOLDER.has(name) && !inside.has(name),
  );
  const closed = PACKAGES.filter((name) => !packages.includes(name));
  const told = [...modules.filter((name) => names.includes(name)).map((name) => `#${name}`), ...packages];
  return [
    {
      regex: `^#(${foreign.join('|')})$`,
      message: `${module} may import ${told.join(', ') || 'no other module'}: see docs/architecture.md.`,
    },
    {
      regex: `^(\\.\\./)+(${folders.join('|')})(/|$)|^(\\.\\./)+main\\.ts$`,
      message: 'Import another module by its public API.',
    },
    {
      regex: `^(${closed.map(asPattern).join('|')})`,
      message: `${module} may use ${packages.join(', ') || 'no package'}.`,
    },
  ];
}

/** The text of the linter's configuration, with the patterns of each module as its row of the table says. */
export function withLintPatterns(text: string, aliases: readonly string[]): string {
  return text.replaceAll(
    /("files": \["src\/([\w-]+)\/\*\*"\],\s*"rules": \{\s*"eslint\/no-restricted-imports": \[\s*"error",\s*\{\s*"patterns": )\[[\s\S]*?\n(\s*)\]/g,
    (whole, head: string, module: string, indent: string) => {
      if (!(module in MODULES)) return whole;
      const patterns = JSON.stringify(lintPatterns(module, aliases), null, 2).split('\n');
      return head + patterns.map((line, at) => (at === 0 ? line : indent + line)).join('\n');
    },
  );
}
