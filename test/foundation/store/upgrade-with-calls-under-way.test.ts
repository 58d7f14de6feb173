import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { ROOT } from '../../architecture/source.ts';
import { LAUNCHER, makePlace, type Place } from '../../program/cli/tollgate.ts';
import { atThisLoad } from '../../support/at-this-load.ts';
import { bareDatabase } from '../../support/fresh-database.ts';
import { IDENTITY_SEED } from '../../support/spine.ts';
import { createKeeper, type ServerProcess } from '../../support/server-process.ts';
import { VERSION } from '../../../src/foundation/version.ts';

// The newer version is this one with one more migration, so the older one needs no change to what it reads.

const NEXT = '9000_next-version';
const MIGRATION = `ALTER TABLE locks ADD COLUMN next_mark TEXT;
CREATE TABLE next_marks (id TEXT PRIMARY KEY, locks BIGINT NOT NULL);
INSERT INTO next_marks SELECT account, count(*) FROM locks GROUP BY account;
`;
const CALLS = 30;

let place: Place;
let newer: string;
const keeper = createKeeper([]);
beforeAll(async () => {
  place = await makePlace();
  const checkout = join(place.dir, 'newer');
  mkdirSync(checkout);
  for (const name of ['bin', 'src', 'package.json'])
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  for (const name of ['node_modules', 'web']) symlinkSync(join(ROOT, name), join(checkout, name));
  writeFileSync(join(checkout, 'src/foundation/store/migrations', `${NEXT}.sql`), MIGRATION);
  newer = join(checkout, 'bin/tollgate.mjs');
});
afterAll(async () => {
  await keeper.close();
  await place.clear();
});

interface Running {
  readonly process: ServerProcess;
  readonly data: string;
  readonly baseUrl: string;
  readonly apiKey: string;
}

function launch(
  launcher: string,
  data: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = ['start'],
): ServerProcess {
  return keeper.start({
    file: process.execPath,
    args: [launcher, ...args],
    cwd: place.dir,
    env: {
      PATH: process.env['PATH'],
      HOME: place.dir,
      TOLLGATE_DATA: data,
      TOLLGATE_IDENTITY_SEED: IDENTITY_SEED,
      OLLAMA_HOST: '127.0.0.1:9',
      PORT: '0',
      ...env,
    },
  });
}

async function start(launcher: string, name: string, env: NodeJS.ProcessEnv): Promise<Running> {
  const data = join(place.dir, name);
  const child = launch(launcher, data, env);
  await child.wrote('Ctrl-C stops it.');
  const dev = JSON.parse(await readFile(join(data, 'dev.json'), 'utf8')) as { base_url: string; api_key: string };
  return { process: child, data, baseUrl: dev.base_url, apiKey: dev.api_key };
}

/** Calls one after the other until it is stopped; resolves with the ids of all. A call that fails rejects. */
function callAll({ baseUrl, apiKey }: Running) {
  const ids: string[] = [];
  let stopping = false;
  const run = async () => {
    while (!stopping || ids.length < CALLS) {
      const response = await fetch(`${baseUrl}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content: 'hello' }] }),
      });
      await response.text();
      if (response.status !== 200) throw new Error(`a call was answered ${response.status}`);
      ids.push(response.headers.get('x-generation-id')!);
    }
    return ids;
  };
  const done = run();
  done.catch(() => {});
  return {
    ids,
    async reached(count: number) {
      await expect.poll(() => ids.length, { timeout: atThisLoad(60_000) }).toBeGreaterThan(count);
    },
    stop() {
      stopping = true;
      return done;
    },
  };
}

async function settledAt({ baseUrl, apiKey }: Running, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const response = await fetch(`${baseUrl}/api/v1/generation?id=${id}`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { data } = (await response.json()) as { data: { state: string } };
    expect(data.state, id).toBe('settled');
  }
}

async function refused(data: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = launch(LAUNCHER, data, env);
  await child.exited;
  expect(child.exitCode).toBe(1);
  expect(child.output()).toContain(`a newer tollgate, ${VERSION}, has changed it, with ${NEXT}`);
  expect(child.output()).toContain(`Run tollgate ${VERSION} or newer, or restore a backup from before the upgrade`);
}

async function audited(data: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = launch(newer, data, env, ['audit', '--data', data]);
  await child.exited;
  expect(child.exitCode, child.output()).toBe(0);
}

it('on PostgreSQL both versions serve side by side while the new one migrates, and nothing is lost', async () => {
  const fresh = await bareDatabase(inject('postgresUrl'));
  try {
    const env = { DATABASE_URL: fresh.url };
    const before = await start(LAUNCHER, 'old', env);
    const oldCalls = callAll(before);
    await oldCalls.reached(5);
    const after = await start(newer, 'new', env);
    const newCalls = callAll(after);
    await newCalls.reached(5);
    await oldCalls.reached(oldCalls.ids.length + 5);
    const [oldIds, newIds] = await Promise.all([oldCalls.stop(), newCalls.stop()]);
    await settledAt(after, oldIds);
    await settledAt(before, newIds);
    before.process.signal('SIGTERM');
    await before.process.exited;
    await refused(before.data, env);
    await audited(after.data, env);
    after.process.signal('SIGTERM');
    await after.process.exited;
  } finally {
    await fresh.drop();
  }
});

it('the embedded database of a version that was killed is taken over, and that version refuses it then', async () => {
  const before = await start(LAUNCHER, 'embedded', {});
  const calls = callAll(before);
  await calls.reached(CALLS);
  const ids = await calls.stop();
  before.process.signal('SIGKILL');
  await before.process.exited;
  const after = await start(newer, 'embedded', {});
  await settledAt(after, ids);
  after.process.signal('SIGTERM');
  await after.process.exited;
  await audited(after.data, {});
  await refused(before.data, {});
});
