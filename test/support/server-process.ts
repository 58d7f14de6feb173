import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** How to start a child process. `uid` and `gid` work only for root. */
export interface ServerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

/** A child process that can't outlive this one. */
export interface ServerProcess {
  readonly pid: number;
  readonly exitCode: number | null;
  readonly signalCode: NodeJS.Signals | null;
  /** Settles when the process has ended. */
  readonly exited: Promise<void>;
  /** The last MiB of its output on stdout and stderr. */
  output(): string;
  /** The part of it on stdout. */
  stdout(): string;
  /** Resolves when the output contains the text. Rejects if the process exits before that. */
  wrote(text: string): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

/**
 * Owns a server's process (or its successive ones) and its temporary folders until `close`, or until this process ends
 * in any way.
 */
export interface Keeper {
  start(command: ServerCommand): ServerProcess;
  /** Kills the running process and deletes the folders. */
  close(): Promise<void>;
}

const OUTPUT_MAX = 1 << 20;

// Waits for the end of its input, which comes when the owner closes it or dies, even by SIGKILL. Each line has the id
// of the process to kill at the end. An empty line means no process.
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

/** Creates a keeper for one server. `directories` are deleted at the end. */
export function createKeeper(directories: readonly string[]): Keeper {
  // Detached, so that Ctrl-C in the terminal doesn't end the keeper before its owner.
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
