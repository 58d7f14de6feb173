import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedis } from './find-redis.ts';
import { findFreePort } from './free-port.ts';
import { createKeeper } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

/** A separate Redis server, only in memory. It ends with this process at the latest. */
export interface Redis {
  readonly url: string;
  readonly port: number;
  readonly version: string;
  /** Deletes all keys. */
  flush(): Promise<void>;
  /** Sends SIGSTOP: connections stay open but get no answers. */
  freeze(): void;
  thaw(): void;
  /** Sends SIGKILL. `restart` starts it again. */
  kill9(): Promise<void>;
  /** Kills the server if it runs, and starts it on the same port without any keys. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  logs(): string;
}

const READY = 'Ready to accept connections';
const PORT_ATTEMPTS = 5;

export async function startRedis(options: { readonly progress?: (line: string) => void } = {}): Promise<Redis> {
  const program = findRedis(options.progress);
  const home = mkdtempSync(join(tmpdir(), 'tollgate-redis-'));
  const keeper = createKeeper([home]);
  let server: ServerProcess | null = null;
  let port = 0;

  const start = async (): Promise<void> => {
    const args = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      home,
      '--save',
      '',
      '--appendonly',
      'no',
      '--daemonize',
      'no',
    ];
    const started = keeper.start({ file: program.file, args, env: program.env, cwd: home });
    server = started;
    await started.wrote(READY);
  };
  const kill9 = async (): Promise<void> => {
    server?.signal('SIGKILL');
    await server?.exited;
  };

  try {
    for (let attempt = 1; ; attempt += 1) {
      port = await findFreePort();
      try {
        await start();
        break;
      } catch (error) {
        if (attempt === PORT_ATTEMPTS || !String(error).includes('Address already in use')) throw error;
      }
    }
  } catch (error) {
    await keeper.close();
    throw error;
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    version: program.version,
    flush: () => command(port, 'FLUSHALL'),
    freeze: () => server?.signal('SIGSTOP'),
    thaw: () => server?.signal('SIGCONT'),
    kill9,
    async restart() {
      await kill9();
      await start();
    },
    async stop() {
      await kill9();
      await keeper.close();
    },
    logs: () => server?.output() ?? '',
  };
}

async function command(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write(`${text}\r\n`);
    const [reply] = (await once(socket, 'data')) as [Buffer];
    if (reply.toString() !== '+OK\r\n') throw new Error(`Redis answered ${reply.toString()} to ${text}`);
  } finally {
    socket.destroy();
  }
}
