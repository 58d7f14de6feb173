import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TEST_MODULES } from '../../../../scripts/test-packages.mjs';

const MODULES = join(TEST_MODULES, '@ai-sdk');

interface RoutedFolder {
  /** A file in the folder, for a configuration. */
  readonly file: string;
  remove(): void;
}

/**
 * A folder in which packages are installed whose vendors' addresses are written into their code. They are the real
 * packages, but each request goes to the origin of the setting `vendor`, with its own path.
 */
export function installRouted(names: readonly string[]): RoutedFolder {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-routed-'));
  for (const name of names) {
    const [real, routed] = [join(MODULES, name), join(folder, 'node_modules', '@ai-sdk', name)];
    mkdirSync(routed, { recursive: true });
    // A link, because a process may read the folder that the manifest is really in: that of the real package.
    symlinkSync(join(real, 'package.json'), join(routed, 'package.json'));
    for (const entry of entriesOf(join(real, 'package.json'))) {
      mkdirSync(dirname(join(routed, entry)), { recursive: true });
      writeFileSync(join(routed, entry), sourceOf(pathToFileURL(join(real, entry)).href));
    }
  }
  return {
    file: join(folder, 'tollgate.toml'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The files of the package's usual entry, and of `edge`. */
function entriesOf(manifest: string): readonly string[] {
  const { exports } = JSON.parse(readFileSync(manifest, 'utf8')) as {
    exports: Readonly<Record<string, { readonly import?: string; readonly default?: string } | string>>;
  };
  return ['.', './edge'].flatMap((name) => {
    const entry = exports[name];
    const path = typeof entry === 'object' ? (entry.import ?? entry.default) : entry;
    return path === undefined ? [] : [path];
  });
}

const sourceOf = (real: string): string => `
import * as real from ${JSON.stringify(real)};
const name = Object.keys(real).find((one) => /^create[A-Z]/.test(one));
export const createRouted = ({ vendor, fetch: pass, ...settings }) => {
  const fetch = (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    return pass(vendor + pathname + search, init);
  };
  globalThis.fetch = fetch;
  return real[name]({ ...settings, fetch });
};
`;
