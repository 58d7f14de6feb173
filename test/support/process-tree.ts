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

function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const [pid, parent] of process.platform === 'linux' ? fromProc() : fromPs()) {
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

function fromProc(): [pid: number, parent: number][] {
  const pairs: [number, number][] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      // The format is `pid (command) state ppid …`. The command may contain spaces and parentheses, so the fields are
      // read after the last parenthesis.
      const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
      pairs.push([Number(name), Number(parent)]);
    } catch {
      // It has ended in the meantime.
    }
  }
  return pairs;
}

function fromPs(): [pid: number, parent: number][] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [pid, parent] = line.trim().split(/\s+/);
    return [Number(pid), Number(parent)];
  });
}
