import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bundle, bundleSources } from './bundle.ts';
import { licencesOf } from './licences.ts';
import { stripped } from './strip-sources.ts';

/**
 * Writes what a package has of `src`: the bundle, the files that modules read beside them (SQL, Lua, pictures), and the
 * licences of the packages in the bundle.
 */
export async function stageSources(checkout: string, stage: string): Promise<Bundle> {
  cpSync(join(checkout, 'src'), join(stage, 'src'), { recursive: true, filter: (path) => !path.endsWith('.ts') });
  const bundle = await bundleSources(checkout, stage);
  const lines = readFileSync(join(import.meta.dirname, 'source-lines.ts'), 'utf8');
  writeFileSync(join(stage, 'src', 'source-lines.js'), stripped(lines));
  writeFileSync(join(stage, 'THIRD_PARTY_LICENSES'), licencesOf(checkout, bundle.bundled));
  return bundle;
}
