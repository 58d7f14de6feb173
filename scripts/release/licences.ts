import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LICENCE } from './prune-modules.ts';

interface Licensed {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/**
 * The licences of packages, with their texts, as one text. A bundle contains their code, but not their files. Throws if
 * a package names no licence. `folders` are relative to the checkout.
 */
export function licencesOf(checkout: string, folders: readonly string[]): string {
  const parts = folders.map((path) => {
    const folder = join(checkout, path);
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Licensed;
    if (typeof license !== 'string') throw new Error(`${name} ${version} names no licence`);
    const texts = readdirSync(folder)
      .filter((file) => LICENCE.test(file))
      .map((file) => readFileSync(join(folder, file), 'utf8').trim());
    if (texts.length === 0)
      texts.push(`The package has no text of the licence: see https://spdx.org/licenses/${license}`);
    return `${name} ${version}\n${license}\n\n${texts.join('\n\n')}\n`;
  });
  return `The code of these packages is part of the files below src.\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}
