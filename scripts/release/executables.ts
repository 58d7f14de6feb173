import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeLibrary } from './library.ts';
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

/** The folder of the library, beside Node. */
const LIBRARIES = 'lib';

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
 * Writes one file that has a package and its Node. It is a program of the shell with archives behind it: the first
 * start unpacks them, into a folder that is named by their digest, and each start runs what lies there. Node is most of
 * the bytes, and is in two halves, so that two processors unpack it.
 */
export function writeExecutable(
  payload: Payload & { readonly library: NodeLibrary | null },
  { stage, out }: { readonly stage: string; readonly out: string },
): void {
  stageWithNode(payload, stage);
  if (payload.library !== null) stageLibrary(payload.library, join(stage, LIBRARIES));
  const node = readFileSync(join(stage, 'node'));
  rmSync(join(stage, 'node'));
  const tar = `${stage}.tar`;
  packTar(stage, ['.'], tar);
  const half = node.byteLength >> 1;
  const archives = [node.subarray(0, half), node.subarray(half), readFileSync(tar)].map(gzipped);
  rmSync(tar);
  writeFileSync(out, Buffer.concat([Buffer.from(headOf(payload, archives)), ...archives]), { mode: 0o755 });
}

function stageLibrary({ name, bytes, licence }: NodeLibrary, folder: string): void {
  mkdirSync(folder);
  writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, 'LICENSE'), licence);
}

function headOf({ command, version, node }: Payload, archives: readonly Buffer[]): string {
  const lines = (bytes: number) => {
    const sizes = archives.map(({ byteLength }) => byteLength);
    const places = sizes.map((size, at) => {
      const from = bytes + 1 + sizes.slice(0, at).reduce((sum, each) => sum + each, 0);
      return `${String(from).padStart(9, '0')} ${size}`;
    });
    return `#!/bin/sh
# ${command} ${version} with Node ${node.version}. The first start unpacks it below $TOLLGATE_UNPACK, or else ~/.cache.
set -eu
parent=\${TOLLGATE_UNPACK:-\${XDG_CACHE_HOME:-\${HOME:-}/.cache}/tollgate}
case $parent in
/.cache/tollgate | //.cache/tollgate)
  echo "${command}: set TOLLGATE_UNPACK to a folder of your own: this user has no home" >&2
  exit 1
  ;;
/*) ;;
*) parent=$PWD/$parent ;;
esac
home=$parent/${sha256(Buffer.concat(archives)).slice(0, 32)}
# A system that has Node's libraries keeps its own: all programs that Node starts inherit the variable.
find_library() {
  [ ! -d "$1/${LIBRARIES}" ] || "$1/node" --version >/dev/null 2>&1 ||
    export LD_LIBRARY_PATH="$1/${LIBRARIES}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
if [ ! -x "$home/node" ]; then
  (umask 077 && mkdir -p "$parent")
  part=$(mktemp -d "$parent/part.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  piece() { tail -c "+$1" "$0" | head -c "$2" | gzip -dc; }
  piece ${places[0]} >"$part/node" &
  first=$!
  piece ${places[1]} >"$part/second" &
  second=$!
  piece ${places[2]} | tar -xf - -C "$part"
  wait "$first"
  wait "$second"
  cat "$part/second" >>"$part/node"
  rm "$part/second"
  chmod 755 "$part/node"
  # Of several that start at once, one is first. A folder that is not empty is not replaced.
  if ! wrong=$(find_library "$part" && "$part/node" -e 'try { fs.renameSync(process.argv[1], process.argv[2]) } catch (error) { if (!fs.existsSync(process.argv[2] + "/node")) throw error }' "$part" "$home" 2>&1); then
    echo "${command}: its Node does not start here: $wrong" >&2
    exit 1
  fi
  rm -rf "$part"
  trap - EXIT
fi
find_library "$home"
exec "$home/node" "$home/${command}" "$@"
`;
  };
  return lines(lines(0).length);
}
