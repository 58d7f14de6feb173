import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Index of field 22 of /proc/<pid>/stat, counted from the field after the command's name, which may contain spaces. */
const START_FIELD = 19;

/**
 * When a process began, as text to compare. Two processes with the same id have different texts. Null if there is no
 * such process, or the system does not tell.
 */
export function processStart(pid: number): string | null {
  if (process.platform === 'win32') return null;
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const ticks = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ', START_FIELD + 1)
        .at(START_FIELD);
      // The ticks count from the start of the system, so the id of that start is added.
      return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}:${ticks}`;
    }
    return (
      execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      }).trim() || null
    );
  } catch {
    return null;
  }
}
