import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PlatformNode } from './nodes.ts';
import { gzipped, packTar, sha256 } from './tar.ts';

/** The files of a package of npm, with a Node beside them. */
interface Payload {
  /** The `.tgz` of the package, as `npm pack` makes it. */
  readonly tarball: string;
  /** The command, which is also the name of the file in `bin` without `.mjs`. */
  readonly command: string;
  readonly version: string;
  readonly node: PlatformNode;
}

/** Unpacks a package and its Node into a new folder. */
export function stageWithNode({ tarball, command, node }: Payload, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['--extract', '--gzip', `--file=${tarball}`, `--directory=${folder}`, '--strip-components=1']);
  copyFileSync(join(node.folder, 'bin', 'node'), join(folder, 'node'));
  chmodSync(join(folder, 'node'), 0o755);
  copyFileSync(join(node.folder, 'LICENSE'), join(folder, 'NODE_LICENSE'));
  // A program is named as it was called, so its texts have a command that can be pasted.
  symlinkSync(`bin/${command}.mjs`, join(folder, command));
}

/**
 * Writes one file that has a package and its Node. It is a program of the shell with an archive behind it: the first
 * start unpacks it, into a folder that is named by the digest of the archive, and each start runs what lies there.
 */
export function writeExecutable(payload: Payload, { stage, out }: { readonly stage: string; readonly out: string }) {
  stageWithNode(payload, stage);
  const tar = `${stage}.tar`;
  packTar(stage, ['.'], tar);
  const archive = gzipped(readFileSync(tar));
  rmSync(tar);
  writeFileSync(out, Buffer.concat([Buffer.from(headOf(payload, sha256(archive))), archive]), { mode: 0o755 });
}

function headOf({ command, version, node }: Payload, digest: string): string {
  const lines = (bytes: number) => `#!/bin/sh
# ${command} ${version} with Node ${node.version}. The first start unpacks it below $TOLLGATE_UNPACK, or else ~/.cache.
set -eu
parent=\${TOLLGATE_UNPACK:-\${XDG_CACHE_HOME:-\${HOME:-}/.cache}/tollgate}
case $parent in
/.cache/tollgate | //.cache/tollgate)
  echo "${command}: set TOLLGATE_UNPACK to a folder of your own: this user has no home" >&2
  exit 1
  ;;
esac
home=$parent/${digest.slice(0, 32)}
if [ ! -x "$home/node" ]; then
  umask 077
  mkdir -p "$parent"
  part=$(mktemp -d "$parent/part.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  tail -c +${String(bytes + 1).padStart(6, '0')} "$0" | gzip -dc | tar -xf - -C "$part"
  # Of several that start at once, one is first. A folder that is not empty is not replaced.
  "$part/node" -e 'try { fs.renameSync(process.argv[1], process.argv[2]) } catch (error) { if (!fs.existsSync(process.argv[2] + "/node")) throw error }' "$part" "$home"
  rm -rf "$part"
  trap - EXIT
fi
exec "$home/node" "$home/${command}" "$@"
`;
  return lines(lines(0).length);
}
