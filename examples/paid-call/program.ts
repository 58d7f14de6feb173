/** Programs of tollgate as child processes that end with this one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const LAUNCHER = fileURLToPath(new URL('../../bin/tollgate.mjs', import.meta.url));

/** The databases that the machine may have for gateways are left alone. */
function cleanEnv(): NodeJS.ProcessEnv {
  // oxlint-disable-next-line node/no-process-env -- what else is set is the user's, and his programs'
  const { DATABASE_URL: _database, REDIS_URL: _redis, ...env } = process.env;
  return env;
}

export interface Program {
  close(): Promise<void>;
}

/**
 * Starts `tollgate <args>`; resolves once it has written a line with `ready`. Rejects when it ends before, with
 * what it wrote.
 */
export async function startProgram(args: readonly string[], ready: string, stopped: AbortSignal): Promise<Program> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
    env: cleanEnv(),
  });
  const exited = once(child, 'exit');
  const close = async () => {
    child.kill();
    await exited;
  };
  const written: string[] = [];
  const seen = new Promise<void>((resolve, reject) => {
    for (const output of [child.stdout!, child.stderr!]) {
      createInterface({ input: output }).on('line', (line) => {
        if (written.length < 200) written.push(line);
        if (line.includes(ready)) resolve();
      });
    }
    void exited.then(() => reject(new Error(`tollgate ${args[0]} ended while it started:\n${written.join('\n')}`)));
    stopped.addEventListener('abort', () => reject(new Error('Stopped')), { once: true });
  });
  try {
    await seen;
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs `tollgate <args>` to its end, in this terminal. Rejects where it fails. */
export async function runProgram(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], { stdio: 'inherit', env: cleanEnv() });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`tollgate ${args.join(' ')} ended with ${code}`);
}

/** A port that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
