import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk of one's own with ext4, in a file. Needs root, loop devices, mkfs.ext4 and perl. */
export interface LoopDisk {
  /** Where it is mounted. */
  readonly folder: string;
  /**
   * Loses the power: what was not flushed is gone, and nothing can be written any more. What was acknowledged by then
   * must be there after `restore`.
   */
  cut(): void;
  /** Mounts it again, as after a cut. No process may have a file of it open. */
  restore(): void;
  /** The end of this process, in whatever way, does the same. */
  dispose(): Promise<void>;
}

const BYTES = 256 * 1024 * 1024;
/** EXT4_IOC_SHUTDOWN, and its flag not to flush the file system's journal. */
const SHUTDOWN = '0x8004587D';
const NO_LOG_FLUSH = 2;

/**
 * Waits for the end of its input, which comes when its owner closes it or dies. $1: folder, $2: device, $3: what to
 * remove. Whoever removes the folder of all tests meanwhile cannot remove what is mounted in it, so it is tried again.
 */
const KEEPER_SCRIPT = `
read -r _
umount "$1" 2>/dev/null || umount -l "$1" 2>/dev/null
[ -z "$2" ] || losetup -d "$2"
rm -rf -- "$3"
rmdir -- "$(dirname "$3")" 2>/dev/null
exit 0
`;

const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { encoding: 'utf8' }).trim();

/** Makes and mounts a disk; null where this machine does not let us. */
export function makeLoopDisk(): LoopDisk | null {
  if (process.getuid?.() !== 0 || !existsSync('/dev/loop-control')) return null;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-disk-'));
  const image = join(home, 'image');
  const folder = join(home, 'disk');
  let device = '';
  try {
    writeFileSync(image, '');
    truncateSync(image, BYTES);
    mkdirSync(folder);
    run('mkfs.ext4', '-q', '-F', image);
    device = run('losetup', '-f', '--show', image);
    run('mount', device, folder);
  } catch {
    if (device) run('losetup', '-d', device);
    rmSync(home, { recursive: true });
    return null;
  }
  // Detached: a Ctrl-C in the terminal must not end the keeper before its owner.
  const keeper = spawn('/bin/sh', ['-c', KEEPER_SCRIPT, 'keeper', folder, device, home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const gone = once(keeper, 'exit');
  keeper.unref();
  return {
    folder,
    cut() {
      const ioctl = `my $flags = pack('L', ${NO_LOG_FLUSH}); ioctl($disk, ${SHUTDOWN}, $flags) or die "$!"`;
      const program = `open(my $disk, '<', $ARGV[0]) or die "$!"; ${ioctl}`;
      run('perl', '-e', program, folder);
    },
    restore() {
      run('umount', folder);
      run('mount', device, folder);
    },
    async dispose() {
      keeper.ref();
      keeper.stdin.end();
      await gone;
    },
  };
}
