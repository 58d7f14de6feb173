import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface CommandLine {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface CommandAnswer {
  readonly code: number;
  /** Both streams as they came. */
  readonly output: string;
  readonly stdout: string;
}

/**
 * One process for all the short commands of a test file: to start one for each costs more than most commands do. It
 * ends with this process.
 */
let loop: Promise<ChildProcess> | null = null;
let last: Promise<unknown> = Promise.resolve();

/** Runs a command that ends by itself, after those that were asked for before. Rejects when the process dies of it. */
export function runInCommandProcess(line: CommandLine): Promise<CommandAnswer> {
  const answer = last.then(() => ask(line));
  last = answer.catch(() => {});
  return answer;
}

async function ask(line: CommandLine): Promise<CommandAnswer> {
  const child = await (loop ??= start(line.cwd));
  const controller = new AbortController();
  const died = once(child, 'exit', { signal: controller.signal }).then(([code]) => {
    loop = null;
    throw new Error(`the process of the commands ended with ${String(code)}: ${line.args.join(' ')}`);
  });
  try {
    child.send(line);
    const [answer] = (await Promise.race([once(child, 'message', { signal: controller.signal }), died])) as [
      CommandAnswer,
    ];
    return answer;
  } finally {
    controller.abort();
    died.catch(() => {});
  }
}

/** `cwd`: what a command is called by is found out where it is called first, outside of the checkout. */
async function start(cwd: string): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'command-loop.ts'), { cwd, execArgv: [], stdio: 'ignore' });
  child.unref();
  await once(child, 'message');
  child.channel?.unref();
  return child;
}
