import { execFileSync } from 'node:child_process';

/** The processes that a process started and that are not its zombies. */
export function children(pid: number): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, parent, state]) => Number(parent) === pid && !state!.startsWith('Z'))
    .map(([own]) => Number(own));
}

/** False as soon as it has ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
