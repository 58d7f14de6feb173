import { spawn } from 'node:child_process';
import { once } from 'node:events';

const WROTE_MS = 120_000;

export interface Program {
  /**
   * Resolves with the first line that contains `word`. Rejects if the program ends before that, or after two minutes.
   */
  wrote(word: string): Promise<string>;
  /** Resolves when the program has exited with 0. Otherwise rejects with its output. */
  ended(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a program and watches its output. `name` is used in errors. */
export function startProgram(
  name: string,
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Program {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  let heard = (): void => {};
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      heard();
    });
  const told = (what: string): Error => new Error(`${name} ${what}. It wrote:\n${text}`);
  const exited = once(child, 'close').then(([code, signal]: unknown[]) => signal ?? code);
  // Callers of `wrote` and `ended` get the error. This only prevents an unhandled rejection.
  exited.catch(() => {});

  return {
    async wrote(word) {
      const found = Promise.withResolvers<string>();
      const late = setTimeout(
        () => found.reject(told(`did not write ${JSON.stringify(word)} within ${WROTE_MS / 1000} s`)),
        WROTE_MS,
      );
      heard = () => {
        const line = text
          .split('\n')
          .slice(0, -1)
          .find((each) => each.includes(word));
        if (line !== undefined) found.resolve(line);
      };
      heard();
      exited.then((end) => found.reject(told(`ended with ${String(end)}`)), found.reject);
      return found.promise.finally(() => clearTimeout(late));
    },
    async ended() {
      const end = await exited;
      if (end !== 0) throw told(`ended with ${String(end)}`);
    },
    kill: (signal) => void child.kill(signal),
  };
}
