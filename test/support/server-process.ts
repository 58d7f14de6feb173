import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** How a child process is started. `uid` and `gid` only work for root. */
export interface ServerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

/** A child process that cannot outlive this one. */
export interface ServerProcess {
  readonly pid: number;
  readonly exitCode: number | null;
  readonly signalCode: NodeJS.Signals | null;
  /** Settles when the process is gone. */
  readonly exited: Promise<void>;
  /** What it wrote on stdout and stderr, the last MiB of it. */
  output(): string;
  /** The part of it that it wrote on stdout. */
  stdout(): string;
  /** Resolves when its output holds the text, rejects when it exits without having written it. */
  wrote(text: string): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

/**
 * Owns one server's process (or its successive ones) and its temporary directories until `close`, or until this
 * process ends in whatever way.
 */
export interface Keeper {
  start(command: ServerCommand): ServerProcess;
  /** Kills what still runs and removes the directories. */
  close(): Promise<void>;
}

const OUTPUT_MAX = 1 << 20;

// Waits for the end of its input, which comes when the owner closes it or dies by any means, SIGKILL included.
// Each line names the process to look after; an empty line names none.
const KEEPER_SCRIPT = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -CONT "$pid" 2>/dev/null
  kill -QUIT "$pid" 2>/dev/null
  tries=0
  while kill -0 "$pid" 2>/dev/null && [ $tries -lt 70 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL "$pid" 2>/dev/null
fi
[ $# -eq 0 ] || rm -rf -- "$@"
`;

/** A keeper for one server; `directories` are deleted at the end. */
export function createKeeper(directories: readonly string[]): Keeper {
  // Detached: a Ctrl-C in the terminal must not end the keeper before its owner.
  const keeper = spawn('/bin/sh', ['-c', KEEPER_SCRIPT, 'keeper', ...directories], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const gone = once(keeper, 'exit');
  keeper.stdin.on('error', () => {});
  keeper.unref();
  if ('unref' in keeper.stdin && typeof keeper.stdin.unref === 'function') keeper.stdin.unref();
  let current: ServerProcess | null = null;

  return {
    start(command) {
      const started = startProcess(command);
      current = started;
      keeper.stdin.write(`${started.pid}\n`);
      void started.exited.then(() => {
        if (current === started) keeper.stdin.write('\n');
      });
      return started;
    },
    async close() {
      if (keeper.exitCode === null && keeper.signalCode === null) {
        keeper.ref();
        keeper.stdin.end();
        await gone;
      }
      await current?.exited;
    },
  };
}

function startProcess(command: ServerCommand): ServerProcess {
  const child = spawn(command.file, command.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: command.env ?? process.env,
    ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
  });
  if (child.pid === undefined) {
    child.on('error', () => {});
    throw new Error(`could not start ${command.file}: is it there and executable?`);
  }
  let output = '';
  let stdout = '';
  const take = (chunk: string): void => {
    output += chunk;
    if (output.length > OUTPUT_MAX) output = output.slice(-OUTPUT_MAX);
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout = (stdout + chunk).slice(-OUTPUT_MAX);
  });
  child.stdout.on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  const exited = once(child, 'close').then(() => {});

  return {
    pid: child.pid,
    get exitCode() {
      return child.exitCode;
    },
    get signalCode() {
      return child.signalCode;
    },
    exited,
    output: () => output,
    stdout: () => stdout,
    wrote(text) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          if (!output.includes(text)) return;
          child.stdout.off('data', look);
          child.stderr.off('data', look);
          resolve();
        };
        child.stdout.on('data', look);
        child.stderr.on('data', look);
        void exited.then(() =>
          reject(new Error(`${command.file} ended before it wrote ${JSON.stringify(text)}:\n${output.slice(-4000)}`)),
        );
        look();
      });
    },
    signal(signal) {
      child.kill(signal);
    },
  };
}
