import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SECTIONS } from '../../../src/server/config/options.ts';
import { makePlace, type Place } from './tollgate.ts';

const SECRETS = ['admin-secret-admin-secret-admin-secret', 'upstream-canary', 'rpc-canary', 'pg-canary', 'user-canary'];
const FILE = `[limits]
requests_per_minute = 7

[server]
admin_key = "std::env::MY_ADMIN"
log_level = "warn"

[telemetry]
otlp_endpoint = "http://user-canary:p@ss-canary@collector:4318"

[[models]]
name = "a/b"
display_name = "B"
provider_name = "A"
[models.pricing]
prompt = 0.15
completion = 0.6
[models.params]
model = "b"
api_base = "https://api.example.com/v1"
api_key = "std::env::MY_UPSTREAM"

[[chains]]
network = "eip155:8453"
rpc_url = "https://rpc.example.com/rpc-canary"
`;

let place: Place;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  place = await makePlace();
  await writeFile(join(place.dir, 'tollgate.toml'), FILE);
  env = {
    TOLLGATE_CONFIG: 'tollgate.toml',
    MY_ADMIN: SECRETS[0],
    MY_UPSTREAM: SECRETS[1],
    DATABASE_URL: `postgres://me:${SECRETS[3]}@db/x`,
    PORT: '9000',
  };
});
afterAll(() => place.clear());

interface Shown {
  readonly options: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly hidden: boolean;
    readonly source: string;
    readonly from: string | null;
  }[];
}

it('shows every option with its value and where it comes from, and no secret', async () => {
  const shown = await place.run(['config', 'show', '--json', '--data', 'elsewhere'], env);
  expect(shown, shown.output).toMatchObject({ code: 0 });
  const { options } = JSON.parse(shown.stdout) as Shown;
  const byKey = new Map(options.map(({ key, ...rest }) => [key, rest]));
  for (const [section, own] of Object.entries(SECTIONS))
    for (const key of Object.keys(own)) expect(byKey.has(`${section}.${key}`), `${section}.${key}`).toBe(true);
  const is = (key: string) => byKey.get(key);
  expect(is('server.data_dir')).toMatchObject({ value: 'elsewhere', source: 'flag', from: '--data' });
  expect(is('server.port')).toMatchObject({ value: 9000, source: 'environment', from: 'environment variable PORT' });
  expect(is('server.log_level')).toMatchObject({ value: 'warn', source: 'file', from: 'tollgate.toml:6' });
  expect(is('server.host')).toMatchObject({ value: '127.0.0.1', source: 'default', from: null });
  expect(is('limits.requests_per_minute')).toMatchObject({ value: 7, from: 'tollgate.toml:2' });
  // As the file writes it.
  expect(is('payments.strangers_max')).toMatchObject({ value: '1000', source: 'default' });
  const hidden = { value: null, hidden: true };
  expect(is('server.admin_key')).toMatchObject({ ...hidden, from: 'tollgate.toml:5, environment variable MY_ADMIN' });
  expect(is('database.url')).toMatchObject({ ...hidden, source: 'environment' });
  expect(is('server.identity_seed')).toMatchObject({ value: null, hidden: false, source: 'default' });
  expect(is('models[0].pricing.prompt')).toMatchObject({ value: 0.15, from: 'tollgate.toml:16' });
  expect(is('models[0].params.api_key')).toMatchObject(hidden);
  expect(is('chains[0].rpc_url')).toMatchObject(hidden);
  expect(is('telemetry.otlp_endpoint')).toMatchObject({ value: 'http://…@collector:4318' });
});

it('shows a table, and what is no default alone', async () => {
  const shown = await place.run(['config', 'show', '--changed'], env);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/^server\.port +9000 +environment variable PORT$/m);
  expect(shown.stdout).toMatch(/^server\.admin_key +\(secret\) +tollgate\.toml:5, environment variable MY_ADMIN$/m);
  expect(shown.stdout).not.toContain('server.host');
  for (const secret of SECRETS) expect(shown.output).not.toContain(secret);
});

it('says what is wrong with a file, as --validate does', async () => {
  await writeFile(join(place.dir, 'wrong.toml'), '[server]\nport = "x"\n');
  const shown = await place.run(['config', 'show', '--config', 'wrong.toml']);
  expect(shown).toMatchObject({ code: 1, stdout: '' });
  expect(shown.output).toContain('wrong.toml:2  server.port');
});
