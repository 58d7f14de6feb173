/** Programs of tollgate as child processes that end with this one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Program {
  close(): Promise<void>;
}

/** Starts `tollgate <args>`; resolves once it has written a line with `ready`. Rejects when it ends before, with what it wrote. */
export async function startProgram(args: readonly string[], ready: string, stopped: AbortSignal): Promise<Program> {
  const launcher = fileURLToPath(new URL('../../bin/tollgate.mjs', import.meta.url));
  // oxlint-disable-next-line node/no-process-env -- the databases that the machine may have for gateways are left alone
  const { DATABASE_URL: _database, REDIS_URL: _redis, ...env } = process.env;
  const child = spawn(process.execPath, [launcher, ...args], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true, env });
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

/** A port that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
