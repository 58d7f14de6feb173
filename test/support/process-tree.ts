import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Stops or continues a process and all its descendants. The parent comes first, so that it can't start more. Processes
 * that have ended are ignored.
 */
export function signalTree(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  trySignal(pid, signal);
  for (const child of descendants(pid)) trySignal(child, signal);
}

/** Sends SIGKILL to a process and all its descendants. */
export function killTree(pid: number): void {
  trySignal(pid, 'SIGSTOP');
  // Before the parent dies, because afterwards its children belong to another parent.
  const children = descendants(pid);
  trySignal(pid, 'SIGKILL');
  for (const child of children) trySignal(child, 'SIGKILL');
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The processes that a process started and that have not ended. */
export const children = (of: number): number[] =>
  processes()
    .filter(({ parent, ended }) => parent === of && !ended)
    .map(({ pid }) => pid);

/** Which of the processes have not ended. One that has ended may still be listed, until its parent has noticed. */
export function running(pids: readonly number[]): number[] {
  const all = new Set(
    processes()
      .filter(({ ended }) => !ended)
      .map(({ pid }) => pid),
  );
  return pids.filter((pid) => all.has(pid));
}

function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of processes()) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  const found: number[] = [];
  const queue = [root];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    const direct = children.get(pid) ?? [];
    found.push(...direct);
    queue.push(...direct);
  }
  return found;
}

interface Row {
  readonly pid: number;
  readonly parent: number;
  /** Its parent has not noticed yet. */
  readonly ended: boolean;
}

/** All processes of this machine. On Linux nothing is started to find them, because `ps` is not on every machine. */
const processes = (): Row[] => (process.platform === 'linux' ? fromProc() : fromPs());

const toRow = (pid: string, parent: string, state: string): Row => ({
  pid: Number(pid),
  parent: Number(parent),
  ended: state.startsWith('Z'),
});

function fromProc(): Row[] {
  const rows: Row[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      // The format is `pid (command) state ppid …`. The command may contain spaces and parentheses, so the fields are
      // read after the last parenthesis.
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ') as [string, string];
      rows.push(toRow(name, parent, state));
    } catch {
      // It has ended in the meantime.
    }
  }
  return rows;
}

function fromPs(): Row[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => toRow(...(line.trim().split(/\s+/) as [string, string, string])));
}
