import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A separate ext4 disk in a file. Needs root, loop devices, mkfs.ext4 and perl. */
export interface LoopDisk {
  /** The mount point. */
  readonly folder: string;
  /**
   * Simulates a power loss: data that was not flushed is lost, and nothing can be written. Data that was acknowledged
   * before must exist after `restore`.
   */
  cut(): void;
  /** Mounts it again after a cut. No process may have one of its files open. */
  restore(): void;
  /** Unmounts and removes the disk. Any end of this process has the same effect. */
  dispose(): Promise<void>;
}

const BYTES = 256 * 1024 * 1024;
/** EXT4_IOC_SHUTDOWN, and its flag that prevents a flush of the file system's journal. */
const SHUTDOWN = '0x8004587D';
const NO_LOG_FLUSH = 2;

/**
 * Waits for the end of its input, which comes when its owner closes it or dies. $1: folder, $2: image, $3: what to
 * remove. It tries again, because another process that removes all test folders can't remove a mounted folder.
 */
const KEEPER_SCRIPT = `
read -r _
umount "$1" 2>/dev/null || umount -l "$1" 2>/dev/null
for device in $(losetup -n -O NAME -j "$2"); do losetup -d "$device"; done
rm -rf -- "$3"
rmdir -- "$(dirname "$3")" 2>/dev/null
exit 0
`;

const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { encoding: 'utf8' }).trim();

/** Empty where nothing can tell. */
const devicesOf = (image: string): readonly string[] =>
  (spawnSync('losetup', ['-n', '-O', 'NAME', '-j', image], { encoding: 'utf8' }).stdout ?? '')
    .split('\n')
    .filter(Boolean);

/** Creates and mounts a disk. Returns null if this machine doesn't allow it. */
export function makeLoopDisk(): LoopDisk | null {
  if (process.getuid?.() !== 0 || !existsSync('/dev/loop-control')) return null;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-disk-'));
  const image = join(home, 'image');
  const folder = join(home, 'disk');
  /** A device of its own each time. */
  const mount = () => run('mount', run('losetup', '-f', '--show', image), folder);
  try {
    writeFileSync(image, '');
    truncateSync(image, BYTES);
    mkdirSync(folder);
    run('mkfs.ext4', '-q', '-F', image);
    mount();
  } catch {
    for (const device of devicesOf(image)) run('losetup', '-d', device);
    rmSync(home, { recursive: true });
    return null;
  }
  // Detached, so that Ctrl-C in the terminal doesn't end the keeper before its owner.
  const keeper = spawn('/bin/sh', ['-c', KEEPER_SCRIPT, 'keeper', folder, image, home], {
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
      // Other tests run packages in mount namespaces, which keep the file system as it was cut. On another device it is
      // opened anew.
      for (const device of devicesOf(image)) run('losetup', '-d', device);
      mount();
    },
    async dispose() {
      keeper.ref();
      keeper.stdin.end();
      await gone;
    },
  };
}
