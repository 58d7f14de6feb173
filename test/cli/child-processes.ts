import { execFileSync } from 'node:child_process';

interface Row {
  readonly pid: number;
  readonly parent: number;
}

/** All processes that have not ended. One that nobody waited for is still listed by the system, as a zombie. */
function processes(): Row[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return rows
    .map((row) => row.trim().split(/\s+/) as [string, string, string])
    .filter(([, , state]) => !state.startsWith('Z'))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

/** The processes that a process started. */
export const children = (of: number) =>
  processes()
    .filter(({ parent }) => parent === of)
    .map(({ pid }) => pid);

/** Which of them have not ended. */
export const running = (pids: readonly number[]) => {
  const all = new Set(processes().map(({ pid }) => pid));
  return pids.filter((pid) => all.has(pid));
};
