import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const OWNER = `
import { startPostgres } from ${JSON.stringify(join(import.meta.dirname, '../support/postgres.ts'))};
import { startRedis } from ${JSON.stringify(join(import.meta.dirname, '../support/redis.ts'))};
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
console.log(JSON.stringify({ postgres: postgres.port, redis: redis.port, directory: postgres.socketDir }));
setInterval(() => {}, 1000);
`;

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

it.each(['SIGKILL', 'SIGINT', 'SIGTERM'] as const)(
  'servers and their files are gone after their owner got %s',
  async (signal) => {
    const owner = spawn(process.execPath, ['--input-type=module', '-e', OWNER], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(owner.stdout, 'data')) as [Buffer];
    const started = JSON.parse(line.toString()) as { postgres: number; redis: number; directory: string };
    expect(await accepts(started.postgres)).toBe(true);
    expect(await accepts(started.redis)).toBe(true);
    owner.kill(signal);
    await expect.poll(() => accepts(started.postgres)).toBe(false);
    await expect.poll(() => accepts(started.redis)).toBe(false);
    await expect.poll(() => existsSync(started.directory)).toBe(false);
  },
);
