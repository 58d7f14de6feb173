import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { ROOT } from '../../architecture/source.ts';
import { makePlace, type Place } from '../../program/cli/tollgate.ts';
import { atThisLoad } from '../../support/at-this-load.ts';
import { bareDatabase } from '../../support/fresh-database.ts';
import { IDENTITY_SEED } from '../../support/spine.ts';
import { createKeeper, type ServerProcess } from '../../support/server-process.ts';
import { VERSION } from '../../../src/foundation/version.ts';

// From the archive of this version, as people have it, to the next one: the checkout with another version and one more
// migration, so the older one needs no change to what it reads.

const NEXT = '9000_next-version';
const MIGRATION = `ALTER TABLE locks ADD COLUMN next_mark TEXT;
CREATE TABLE next_marks (id TEXT PRIMARY KEY, locks BIGINT NOT NULL);
INSERT INTO next_marks SELECT account, count(*) FROM locks GROUP BY account;
`;
const CALLS = 30;
/** Callers at the same time. */
const CALLERS = 8;
const NEXT_VERSION = '9.0.0';

let place: Place;
let older: string;
let newer: string;
const keeper = createKeeper([]);
beforeAll(async () => {
  place = await makePlace();
  const archives = join(place.dir, 'archives');
  const release = join(ROOT, 'scripts/release/release.ts');
  execFileSync(process.execPath, [release, '--dirty', '--platforms', '', '--no-image', '--out', archives], {
    stdio: 'pipe',
  });
  const installed = join(place.dir, 'older');
  mkdirSync(installed);
  const archive = join(archives, `tollgate-${VERSION}.tgz`);
  execFileSync('tar', ['-xzf', archive, '-C', installed, '--strip-components=1']);
  older = join(installed, 'bin/tollgate.mjs');
  const checkout = join(place.dir, 'newer');
  mkdirSync(checkout);
  for (const name of ['bin', 'src', 'package.json'])
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  for (const name of ['node_modules', 'web']) symlinkSync(join(ROOT, name), join(checkout, name));
  writeFileSync(join(checkout, 'src/foundation/store/migrations', `${NEXT}.sql`), MIGRATION);
  const manifest = join(checkout, 'package.json');
  writeFileSync(
    manifest,
    readFileSync(manifest, 'utf8').replace(`"version": "${VERSION}"`, `"version": "${NEXT_VERSION}"`),
  );
  newer = join(checkout, 'bin/tollgate.mjs');
}, 600_000);
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

/**
 * Several callers, each one call after the other, until they are stopped; resolves with the ids of all answers. A call
 * that is answered with an error rejects, unless the gateway is `leaving`: then it may refuse, or be gone.
 */
function callAll({ baseUrl, apiKey }: Running) {
  const ids: string[] = [];
  let stopping = false;
  let leaving = false;
  const run = async () => {
    while (!stopping || ids.length < CALLS) {
      const response = await ask().catch((error: unknown) => {
        if (leaving) return null;
        throw error;
      });
      if (response === null || (leaving && response.status === 503)) return;
      await response.text();
      if (response.status !== 200) throw new Error(`a call was answered ${response.status}`);
      ids.push(response.headers.get('x-generation-id')!);
    }
  };
  const ask = () =>
    fetch(`${baseUrl}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content: 'hello' }] }),
    });
  const done = Promise.all(Array.from({ length: CALLERS }, run)).then(() => ids);
  done.catch(() => {});
  return {
    ids,
    async reached(count: number) {
      await expect.poll(() => ids.length, { timeout: atThisLoad(60_000) }).toBeGreaterThan(count);
    },
    leave() {
      leaving = true;
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
  const child = launch(older, data, env);
  await child.exited;
  expect(child.exitCode).toBe(1);
  expect(child.output()).toContain(`a newer tollgate, ${NEXT_VERSION}, has changed it, with ${NEXT}`);
  expect(child.output()).toContain(`this is tollgate ${VERSION},`);
  expect(child.output()).toContain(
    `Run tollgate ${NEXT_VERSION} or newer, or restore a backup from before the upgrade`,
  );
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
    const before = await start(older, 'old', env);
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

it.each(['SIGKILL', 'SIGTERM'] as const)(
  'the embedded database of a version that got %s under load is taken over, and that version refuses it then',
  async (signal) => {
    const before = await start(older, `embedded-${signal}`, {});
    const calls = callAll(before);
    await calls.reached(CALLS);
    calls.leave();
    before.process.signal(signal);
    await before.process.exited;
    const ids = await calls.stop();
    const after = await start(newer, `embedded-${signal}`, {});
    await settledAt(after, ids);
    const more = callAll(after);
    await more.reached(CALLS);
    await settledAt(after, await more.stop());
    after.process.signal('SIGTERM');
    await after.process.exited;
    await audited(after.data, {});
    await refused(before.data, {});
  },
);
