import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { children, isRunning } from './child-processes.ts';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
let database: FreshDatabase;
beforeEach(async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
  await writeFile(join(place.dir, 'tollgate.toml'), '');
});
afterEach(async () => {
  await place.clear();
  await database.drop();
});

const serve = (count: string, env: NodeJS.ProcessEnv = {}) =>
  place.gateway(['serve', '--config', 'tollgate.toml', '--workers', count], { DATABASE_URL: database.url, ...env });
const baseUrl = async () => (await place.read('gateway.json'))['base_url']!;
const lines = (gateway: ServerProcess) =>
  gateway
    .output()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly msg: string; readonly worker?: number });

/** A request on a connection of its own; rejects when it has no answer in time. */
async function ask(url: string, path = '/health/ready', ms = 10_000): Promise<string> {
  const answer = await fetch(`${url}${path}`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(ms) });
  expect(answer.status).toBe(200);
  return answer.text();
}

describe('tollgate serve --workers', () => {
  it('runs so many gateways on one port, and says that it listens when all do', async () => {
    const gateway = await serve('2');
    const pids = children(gateway.pid);
    expect(pids).toHaveLength(2);
    expect(lines(gateway).map(({ msg, worker }) => [msg, worker])).toEqual(
      expect.arrayContaining([
        ['a worker listens', 0],
        ['a worker listens', 1],
        ['listening', undefined],
      ]),
    );
    expect(lines(gateway).at(-1)).toMatchObject({ msg: 'listening', workers: 2, address: await baseUrl() });
    expect((await place.read('gateway.json'))['pid']).toBe(gateway.pid);
    // Each answers while the other stands still, which holds at most one connection up.
    for (const [index, pid] of pids.entries()) {
      process.kill(pid, 'SIGSTOP');
      const answers = Array.from({ length: 5 }, () => baseUrl().then((url) => ask(url, '/health/ready')));
      let left = answers.length;
      await new Promise<void>((resolve, reject) => {
        for (const answer of answers)
          answer.then(() => {
            left -= 1;
            if (left === 1) resolve();
          }, reject);
      });
      process.kill(pids[index]!, 'SIGCONT');
      await Promise.all(answers);
    }
    const text = await ask(await baseUrl(), '/metrics');
    expect(text).toContain('tollgate_processes 2');
    expect(text).toContain('tollgate_http_requests_total{method="GET",route="/health/ready",status="200"} 10');
    expect(text).toContain('tollgate_locks_held 0');
    // The commands of this machine find it.
    expect((await place.run(['account', 'create', 'acme'])).code).toBe(0);
  });

  it('replaces a worker that was killed, and serves meanwhile', async () => {
    const gateway = await serve('2');
    const url = await baseUrl();
    await ask(url, '/metrics');
    const before = children(gateway.pid);
    process.kill(before[0]!, 'SIGKILL');
    await gateway.wrote('a worker died');
    expect(await ask(url)).toContain('ok');
    while (lines(gateway).filter(({ msg }) => msg === 'a worker listens').length < 3) await gateway.wrote('a worker listens');
    const after = children(gateway.pid);
    expect([after.length, after.includes(before[0]!), after.includes(before[1]!)]).toEqual([2, false, true]);
    expect(await ask(url, '/metrics')).toContain('tollgate_processes 2');
  });
});
