import { execFileSync } from 'node:child_process';
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
  dispose(): void;
}

const BYTES = 256 * 1024 * 1024;
/** EXT4_IOC_SHUTDOWN, and its flag not to flush the file system's journal. */
const SHUTDOWN = '0x8004587D';
const NO_LOG_FLUSH = 2;

const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { encoding: 'utf8' }).trim();

/** Makes and mounts a disk; null where this machine does not let us. */
export function makeLoopDisk(): LoopDisk | null {
  if (process.getuid?.() !== 0 || !existsSync('/dev/loop-control')) return null;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-disk-'));
  const image = join(home, 'image');
  const folder = join(home, 'disk');
  let device = '';
  const dispose = () => {
    try {
      run('umount', folder);
    } catch {
      // It is not mounted.
    }
    if (device) run('losetup', '-d', device);
    rmSync(home, { recursive: true });
  };
  try {
    writeFileSync(image, '');
    truncateSync(image, BYTES);
    mkdirSync(folder);
    run('mkfs.ext4', '-q', '-F', image);
    device = run('losetup', '-f', '--show', image);
    run('mount', device, folder);
  } catch {
    dispose();
    return null;
  }
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
    dispose,
  };
}
