import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { type Bundle, bundleSources, type Program } from './bundle.ts';
import { licencesOf } from './licences.ts';

/**
 * Writes what the package of a program has of `src`: the bundle, the files that its modules read (SQL, Lua, pictures),
 * and the licences of the packages in the bundle.
 */
export async function stageSources(checkout: string, stage: string, program: Program): Promise<Bundle> {
  if (program.readsFiles)
    cpSync(join(checkout, 'src'), join(stage, 'src'), { recursive: true, filter: (path) => !path.endsWith('.ts') });
  const bundle = await bundleSources(checkout, stage, program);
  const lines = readFileSync(join(import.meta.dirname, 'source-lines.ts'), 'utf8');
  writeFileSync(join(stage, 'src', 'source-lines.js'), stripTypeScriptTypes(lines));
  writeFileSync(join(stage, 'THIRD_PARTY_LICENSES'), licencesOf(checkout, bundle.bundled));
  return bundle;
}
