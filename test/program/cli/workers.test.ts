import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import type { ServerProcess } from '../../support/server-process.ts';
import { children, running } from '../../support/process-tree.ts';
import { makePlace, type Place } from './tollgate.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';

let place: Place;
let database: FreshDatabase;
/** Workers whose supervisor may end without them if it is broken. */
const started: number[] = [];
const arrange = async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
  await writeFile(join(place.dir, 'tollgate.toml'), '');
};
const clear = async () => {
  for (const pid of running(started.splice(0))) process.kill(pid, 'SIGKILL');
  await place.clear();
  await database.drop();
};

const serve = (count: string, env: NodeJS.ProcessEnv = {}) =>
  place.gateway(['serve', '--config', 'tollgate.toml', '--workers', count], { DATABASE_URL: database.url, ...env });
const baseUrl = async () => (await place.read('gateway.json'))['base_url']!;
const lines = (gateway: ServerProcess) =>
  gateway
    .stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { readonly msg: string; readonly worker?: number });

const listening = (gateway: ServerProcess) =>
  lines(gateway)
    .filter(({ msg }) => msg === 'a worker listens')
    .map(({ worker }) => worker);

const MODEL = `[[models]]
name = "new/model"
display_name = "New"
provider_name = "New"
[models.pricing]
prompt = 1
completion = 1
[models.params]
model = "x"
api_base = "http://127.0.0.1:9/v1"
`;

async function eventually(check: () => void): Promise<void> {
  // Processes start when the machine gets to it: what never comes is all that fails here.
  await vi.waitFor(check, { timeout: 60_000, interval: 20 });
}

/** A request on a connection of its own; rejects when it has no answer in time. */
async function ask(url: string, path = '/api/v1/ping', ms = 60_000): Promise<string> {
  const { admin_key: adminKey } = await place.read('gateway.json');
  const answer = await fetch(`${url}${path}`, {
    headers: { connection: 'close', ...(path === '/metrics' ? { authorization: `Bearer ${adminKey}` } : {}) },
    signal: AbortSignal.timeout(ms),
  });
  expect(answer.status).toBe(200);
  return answer.text();
}

const ANSWERED = 'tollgate_http_requests_total{method="GET",route="/api/v1/ping",status="200"}';

describe('tollgate serve --workers 2', () => {
  let gateway: ServerProcess;
  beforeAll(async () => {
    await arrange();
    gateway = await serve('2');
  });
  afterAll(clear);

  it('runs so many gateways on one port, and says that it listens when all do', async () => {
    const pids = children(gateway.pid);
    expect(pids).toHaveLength(2);
    expect(lines(gateway).find(({ msg }) => msg === 'listening')).toMatchObject({
      workers: 2,
      address: await baseUrl(),
    });
    expect(gateway.output()).toContain('each worker counts rate limits by itself');
    // Their logs come through as they are.
    await eventually(() => expect(listening(gateway)).toEqual([0, 1]));
    expect((await place.read('gateway.json'))['pid']).toBe(gateway.pid);
    // Each answers while the other stands still, which holds at most one connection up.
    for (const [index, pid] of pids.entries()) {
      process.kill(pid, 'SIGSTOP');
      const answers = Array.from({ length: 5 }, () => baseUrl().then((url) => ask(url)));
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
    // The text is up to a second old.
    await expect.poll(async () => ask(await baseUrl(), '/metrics')).toContain(`${ANSWERED} 10\n`);
    const text = await ask(await baseUrl(), '/metrics');
    expect(text).toContain('tollgate_processes 2');
    expect(text).toContain('tollgate_locks_held 0');
    // The commands of this machine find it.
    expect(await place.run(['account', 'create', 'acme'])).toMatchObject({ code: 0 });
  });

  it('reloads all workers, by a signal and by the admin API', async () => {
    const file = join(place.dir, 'tollgate.toml');
    const reloaded = () => lines(gateway).filter(({ msg }) => msg === 'the configuration was reloaded').length;
    await writeFile(file, MODEL);
    gateway.signal('SIGHUP');
    await eventually(() => expect(reloaded()).toBe(2));
    for (let turn = 0; turn < 4; turn += 1) expect(await ask(await baseUrl(), '/api/v1/models')).toContain('new/model');
    await writeFile(file, '[server]\nport = "x"\n');
    const refused = await place.run(['reload']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.output).toMatch(/tollgate\.toml:2 {2}server\.port/);
    await writeFile(file, '');
    const done = await place.run(['reload']);
    expect(done).toMatchObject({ code: 0, stdout: '- model new/model of New\n' });
    for (let turn = 0; turn < 4; turn += 1)
      expect(await ask(await baseUrl(), '/api/v1/models')).not.toContain('new/model');
    // Each of both has counted.
    await expect
      .poll(() => baseUrl().then((url) => ask(url, '/metrics')))
      .toMatch(/tollgate_reloads_total\{outcome="applied"\} 4\ntollgate_reloads_total\{outcome="refused"\} 2/);
  });

  it('replaces a worker that was killed, and serves meanwhile', async () => {
    const url = await baseUrl();
    await expect.poll(() => ask(url, '/metrics')).toContain(`${ANSWERED} 10\n`);
    await eventually(() => expect(listening(gateway)).toHaveLength(2));
    const before = children(gateway.pid);
    process.kill(before[0]!, 'SIGKILL');
    await gateway.wrote('a worker died');
    expect(await ask(url)).toBe('pong');
    // The one that takes its place is still being built.
    await expect.poll(() => children(gateway.pid).length).toBe(2);
    expect(await place.run(['reload'])).toMatchObject({ code: 0 });
    // Ten were counted before, by both: what the killed one counted is not forgotten. The text is up to a second old.
    await expect.poll(() => ask(url, '/metrics')).toContain(`${ANSWERED} 11\n`);
    await eventually(() => expect(listening(gateway)).toHaveLength(3));
    const after = children(gateway.pid);
    expect([after.length, after.includes(before[0]!), after.includes(before[1]!)]).toEqual([2, false, true]);
    await expect.poll(() => ask(url, '/metrics')).toContain('tollgate_processes 2');
  });

  it('ends when its workers cannot start, with what is wrong said once', async () => {
    const port = new URL(await baseUrl()).port;
    const { code, output } = await place.run(['serve', '--config', 'tollgate.toml', '--workers', '3'], {
      DATABASE_URL: database.url,
      PORT: port,
    });
    expect(code).toBe(1);
    expect(output.match(/is taken by another program/g)).toHaveLength(1);
    expect(gateway.exitCode).toBeNull();
  });

  it('drains all workers on SIGTERM, and leaves nothing behind', async () => {
    const pids = children(gateway.pid);
    gateway.signal('SIGTERM');
    await gateway.exited;
    expect([gateway.exitCode, gateway.signalCode]).toEqual([0, null]);
    expect(lines(gateway).filter(({ msg }) => msg === 'stopping: running calls may finish')).toHaveLength(3);
    expect(running(pids)).toEqual([]);
    expect(await readdir(place.data)).not.toContain('gateway.json');
  });
});

describe('tollgate serve --workers', () => {
  beforeEach(arrange);
  afterEach(clear);

  it('stops them when it is killed itself', async () => {
    const gateway = await serve('2');
    const pids = children(gateway.pid);
    started.push(...pids);
    gateway.signal('SIGKILL');
    // Its output is open for as long as a worker lives.
    await gateway.exited;
    // Its output closes a moment before the system has ended the last one.
    await eventually(() => expect(running(pids)).toEqual([]));
    expect(lines(gateway).filter(({ msg }) => msg === 'stopping: running calls may finish')).toHaveLength(2);
  });

  it.each(DEEP ? [1, 2] : [1])('leaves none behind when it is killed as soon as there are %i', async (count) => {
    const supervisor = place.launch(['serve', '--config', 'tollgate.toml', '--workers', '2'], {
      DATABASE_URL: database.url,
    });
    await eventually(() => expect(children(supervisor.pid).length).toBeGreaterThanOrEqual(count));
    started.push(...children(supervisor.pid));
    supervisor.signal('SIGKILL');
    await supervisor.exited;
    // A worker that was still loading its modules learns of it as soon as they are there.
    await eventually(() => expect(running(started)).toEqual([]));
  });

  it('does not start without PostgreSQL, and says why', async () => {
    const { code, output } = await place.run(['serve', '--config', 'tollgate.toml', '--workers', '2']);
    expect([code, output]).toEqual([1, expect.stringContaining('--workers needs PostgreSQL')]);
    expect(output).not.toContain('    at ');
  });

  it('ends at once on a second signal', async () => {
    const gateway = await serve('2');
    const pids = children(gateway.pid);
    started.push(...pids);
    // A worker that cannot end by itself.
    process.kill(pids[0]!, 'SIGSTOP');
    gateway.signal('SIGINT');
    await gateway.wrote('stopping: running calls may finish');
    const again = setInterval(() => gateway.signal('SIGINT'), 100);
    await gateway.exited;
    clearInterval(again);
    expect(gateway.exitCode).toBe(130);
    // SIGKILL was sent before the supervisor ended, but the kernel may still be ending the worker's threads.
    await eventually(() => expect(running(pids)).toEqual([]));
  });
});
