import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { SIGN_IN_TOML } from '../../support/wallets.ts';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
let database: FreshDatabase;
let provider: TestProvider;
let proxy: DialledIn | null = null;
beforeEach(async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
  provider = await startProvider();
  await writeFile(join(place.dir, 'tollgate.toml'), `${SIGN_IN_TOML}[tunnel]\nproviders = "anyone"\n`);
});
afterEach(async () => {
  proxy?.kill();
  await provider.stop();
  await place.clear();
  await database.drop();
});

const CALLS = 24;

it('calls through the tunnel of whichever worker finish when the workers are stopped', async () => {
  const gateway = await place.gateway(['serve', '--config', 'tollgate.toml', '--workers', '3'], {
    DATABASE_URL: database.url,
  });
  const url = (await place.read('gateway.json'))['base_url']!;
  for (const args of [
    ['account', 'create', 'acme'],
    ['account', 'credit', 'acme', '5'],
  ])
    expect((await place.run(args)).code).toBe(0);
  const key = (await place.run(['key', 'create', 'acme'])).stdout.trim().split('\n')[0]!;
  proxy = await dialIn({ router: url, services: offeredModel({ url: provider.url }) });

  const call = (more: object) =>
    fetch(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({
        model: 'tunnel/model',
        messages: [{ role: 'user', content: '!tokens:20' }],
        max_tokens: 50,
        ...more,
      }),
    });
  // What one worker knows the others know within a second.
  const known = async () =>
    (await (await fetch(`${url}/api/v1/models`, { headers: { connection: 'close' } })).text()).includes('tunnel/model');
  for (let inARow = 0; inARow < 12;) inARow = (await known()) ? inARow + 1 : 0;

  for (let done = 0; done < CALLS; done += 1) {
    const answer = await call({});
    expect([
      answer.status,
      ((await answer.json()) as { usage: { completion_tokens: number } }).usage.completion_tokens,
    ]).toEqual([200, 20]);
  }

  const released = Promise.withResolvers<void>();
  provider.hold(released.promise);
  const streams = Array.from({ length: 6 }, () => call({ stream: true }));
  while (provider.log.length < CALLS + 6) await new Promise((resolve) => setTimeout(resolve, 10));
  gateway.signal('SIGTERM');
  await gateway.wrote('stopping: running calls may finish');
  released.resolve();
  for (const stream of streams) expect((await (await stream).text()).trimEnd().endsWith('data: [DONE]')).toBe(true);
  await gateway.exited;
  expect(gateway.exitCode).toBe(0);
  const audit = await place.run(['audit', '--json'], { DATABASE_URL: database.url });
  expect(JSON.parse(audit.stdout)).toMatchObject({ ok: true, totals: { locksHeld: 0, locksSettled: CALLS + 6 } });
});
