import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bundle, PROVIDER } from './bundle.ts';
import type { Manifest } from './manifest.ts';
import { stageSources } from './stage-sources.ts';

/** Name of the package that contains only the provider's proxy, and of its command. */
export const PROVIDER_NAME = 'tollgate-provide';

/**
 * Writes the package of a provider's proxy into a folder, ready for `npm pack`. It has what its entry may load, so it
 * has no gateway, database, chains or pages. All of its packages are in the bundle, so it has no `node_modules`.
 */
export async function stageProvider(checkout: string, stage: string, manifest: Manifest): Promise<Bundle> {
  const bundle = await stageSources(checkout, stage, PROVIDER);
  if (bundle.external.length > 0)
    throw new Error(`The provider's package would need ${bundle.external.join(', ')} installed`);
  const copy = (path: string, to: string) => copyFileSync(join(checkout, path), join(stage, to));
  mkdirSync(join(stage, 'bin'));
  copy('bin/tollgate.mjs', `bin/${PROVIDER_NAME}.mjs`);
  copy('LICENSE', 'LICENSE');
  copy('scripts/release/provider-readme.md', 'README.md');
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(providerManifest(manifest), null, 2)}\n`);
  return bundle;
}

const providerManifest = ({ version, license }: Manifest): Record<string, unknown> => ({
  name: PROVIDER_NAME,
  version,
  description: "A provider's proxy: sells calls of your own models, tools and agents through a tollgate gateway",
  license,
  type: 'module',
  bin: { [PROVIDER_NAME]: `bin/${PROVIDER_NAME}.mjs` },
  engines: { node: '>=24' },
});
