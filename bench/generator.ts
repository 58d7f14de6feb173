import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Job, JobResult } from './load/job.ts';

/** The load generator's process. It runs one job at a time. */
export interface Generator {
  readonly pid: number;
  run(job: Job): Promise<JobResult>;
  /** Closes the streams of a `hold` job. */
  release(): Promise<void>;
  stop(): void;
}

export function startGenerator(): Generator {
  const child = fork(fileURLToPath(new URL('load/main.ts', import.meta.url)), { stdio: 'inherit' });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the load generator ended');
  });
  ended.catch(() => {});
  const ask = async (message: Job | 'release'): Promise<unknown> => {
    child.send(message);
    const [answer] = (await Promise.race([once(child, 'message'), ended])) as [unknown];
    return answer;
  };
  return {
    pid: child.pid!,
    async run(job) {
      const answer = (await ask(job)) as JobResult | { failed: string };
      if ('failed' in answer) throw new Error(answer.failed);
      return answer;
    },
    async release() {
      await ask('release');
    },
    stop() {
      child.disconnect();
    },
  };
}
