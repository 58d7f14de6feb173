import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** A group of processes with a memory limit, as a container has it: a process that exceeds it is killed. */
export interface MemoryGroup {
  /** A shell command that moves the shell into the group. Processes that it becomes or starts stay in the group. */
  readonly enter: string;
  /** The most memory in bytes that the group had, with the page cache. */
  peak(): number;
  /** Its processes must have ended. */
  remove(): Promise<void>;
}

const V1 = '/sys/fs/cgroup/memory';
const V2 = '/sys/fs/cgroup';

/** Makes a group for at most `bytes`. null if this machine does not let this process make one. */
export function createMemoryGroup(bytes: number): MemoryGroup | null {
  const name = `tollgate-test-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const first = existsSync(`${V1}/memory.limit_in_bytes`);
  const folder = `${first ? V1 : V2}/${name}`;
  try {
    mkdirSync(folder);
    writeFileSync(`${folder}/${first ? 'memory.limit_in_bytes' : 'memory.max'}`, String(bytes));
    if (!first) writeFileSync(`${folder}/memory.swap.max`, '0');
  } catch {
    if (existsSync(folder)) rmdirSync(folder);
    return null;
  }
  return {
    enter: `echo $$ > ${folder}/cgroup.procs`,
    peak: () => Number(readFileSync(`${folder}/${first ? 'memory.max_usage_in_bytes' : 'memory.peak'}`, 'utf8')),
    async remove() {
      for (let tries = 0; readFileSync(`${folder}/cgroup.procs`, 'utf8') !== '' && tries < 100; tries++)
        await pause(50);
      rmdirSync(folder);
    },
  };
}
