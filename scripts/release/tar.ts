import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

/** Owner and rights of the entries. Default: root, with the rights of the files. */
interface Owner {
  readonly id: number;
  readonly mode: string;
}

/**
 * Packs `names` of a folder into the archive `file`, or adds them to it: with GNU tar, in the order of their names,
 * with no time and no names of users, so that the same files give the same bytes.
 */
export function packTar(folder: string, names: readonly string[], file: string, owner?: Owner): void {
  const { id, mode } = owner ?? { id: 0, mode: 'u=rwX,go=rX' };
  const always = ['--sort=name', '--mtime=@0', '--numeric-owner', '--format=ustar', `--owner=${id}`, `--group=${id}`];
  const how = owner === undefined ? '--create' : '--append';
  execFileSync('tar', [how, ...always, `--mode=${mode}`, `--file=${file}`, `--directory=${folder}`, '--', ...names]);
}

export const gzipped = (bytes: Uint8Array): Buffer => gzipSync(bytes);

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export const sha256Of = (path: string): string => sha256(readFileSync(path));
