import { describe, expect, test } from 'vitest';
import type { Config } from '../../../src/server/config/config.ts';
import { camelKey, type Option } from '../../../src/server/config/option.ts';
import { SECTIONS, type OptionKey } from '../../../src/server/config/options.ts';
import { type FormatValues, valuesOfFormat } from './format-values.ts';
import { load, problemsOf } from './load.ts';

const seed = '0123456789abcdef'.repeat(4);
const NETWORKS = ['["10.0.0.0/8", "::1"]', ['10.0.0.0/8', '::1'], '["10.0.0.0/33"]'] as const;

/** Values of options whose format does not say them: one of a file, what becomes of it, and one that is refused. */
const VALUES = {
  'server.host': ['"0.0.0.0"', '0.0.0.0', '"a b"'],
  'server.data_dir': ['"/srv/gate"', '/srv/gate', '""'],
  'server.admin_key': [`"${seed}"`, seed, '"only-31-characters-are-too-few-"'],
  'server.admin_networks': NETWORKS,
  'server.identity_seed': [`"${seed.toUpperCase()}"`, seed, '"00"'],
  'server.second_identity_seed': [`"${seed.toUpperCase()}"`, seed, '"00"'],
  'server.trusted_proxies': NETWORKS,
  'server.public_url': ['"https://gate.example:8402/"', 'https://gate.example:8402', '"https://gate.example/path"'],
  'server.marketplace_url': ['"https://market.example/all"', 'https://market.example/all', '"market.example"'],
  'server.dashboard_url': ['"https://account.example"', 'https://account.example', '"ftp://account.example"'],
  'server.allowed_hosts': ['["a.internal", "[fd00::1]"]', ['a.internal', '[fd00::1]'], '["gate.internal:8402"]'],
  'server.cors_origins': ['["https://a.example", "*"]', ['https://a.example', '*'], '["https://a.example/path"]'],
  'server.allowed_origins': [
    '["vscode-webview://a", "null"]',
    ['vscode-webview://a', 'null'],
    '["https://a.example/"]',
  ],
  'sign_in.domains': ['["a.example", "b.example:8402"]', ['a.example', 'b.example:8402'], '["A.example"]'],
  'oauth.issuer': ['"https://idp.example/realms/main"', 'https://idp.example/realms/main', '"http://idp.example"'],
  'oauth.audience': ['"api://tollgate"', 'api://tollgate', '"two words"'],
  'oauth.scopes': ['["mcp", "mcp:call"]', ['mcp', 'mcp:call'], '["two words"]'],
  'oauth.required_scope': ['"mcp:call"', 'mcp:call', "'a\"b'"],
  'oauth.jwks_url': ['"http://127.0.0.1:9/keys?set=1"', 'http://127.0.0.1:9/keys?set=1', '"ftp://idp.example/keys"'],
  'people.issuer': ['"https://idp.example/realms/main"', 'https://idp.example/realms/main', '"http://idp.example"'],
  'people.client_id': ['"tollgate"', 'tollgate', '"two words"'],
  'people.client_secret': ['"secret"', 'secret', '"two words"'],
  'people.name': ['"Acme"', 'Acme', '""'],
  'people.scopes': ['["groups"]', ['groups'], '["two words"]'],
  'people.groups_claim': ['"roles"', 'roles', '"two words"'],
  'people.groups': [
    '[{ group = "staff", organisation = "acme", budget = 5 }]',
    [{ group: 'staff', admin: [], organisation: 'acme', role: 'member', budget: 5_000_000n }],
    '[{ group = "staff", organisation = "acme", role = "owner" }]',
  ],
  'tunnel.providers': [
    '["tollgate:local:acme", "8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm"]',
    ['tollgate:local:acme', '8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm'],
    '["Name"]',
  ],
  'tunnel.shared_names': ['["acme/a"]', ['acme/a'], '["a b"]'],
  'cluster.url': ['"https://10.0.0.1:8403/"', 'https://10.0.0.1:8403', '"http://10.0.0.1"'],
  'cluster.host': ['"0.0.0.0"', '0.0.0.0', '"a b"'],
  'cluster.secret': [`"${seed}"`, seed, '"short"'],
  'database.url': ['"postgres://u:p@db/t"', 'postgres://u:p@db/t', '"mysql://db"'],
  'redis.url': ['"rediss://r:6379/1"', 'rediss://r:6379/1', '"http://r"'],
  'telemetry.otlp_headers': ['"a=Basic%20abc,x-tenant=me"', 'a=Basic%20abc,x-tenant=me', '"authorization: Basic abc"'],
  'telemetry.otlp_endpoint': ['"http://otel:4318/"', 'http://otel:4318', '"otel:4318"'],
  'billing.run_cost_max': ['0.25', 250_000n, '-1'],
  'ledger.flush': ['"50ms"', 50, '"4ms"'],
  'media.s3_url': ['"https://s3.example/films/gate/"', 'https://s3.example/films/gate', '"https://s3.example"'],
  'media.s3_region': ['"eu-1"', 'eu-1', '"a b"'],
  'media.s3_access_key_id': ['"AKIA"', 'AKIA', '"a b"'],
  'media.s3_secret_access_key': ['"secret"', 'secret', '"a b"'],
  'payments.payouts': ['"by bank transfer each month"', 'by bank transfer each month', '"two\\nlines"'],
  'payments.strangers_max': ['5', 5_000_000n, '-1'],
  'alerts.url': ['"https://hooks.example.com/T0/key"', 'https://hooks.example.com/T0/key', '"ftp://hooks.example.com"'],
  'telemetry.metrics_key': [`"${'k'.repeat(32)}"`, 'k'.repeat(32), '"short"'],
  'alerts.secret': ['"a-secret-of-the-alerts"', 'a-secret-of-the-alerts', '"short"'],
} as const satisfies Partial<Record<OptionKey, readonly [toml: string, is: unknown, wrong: string]>>;

/** Other lines of its section that an option needs. */
const BESIDE: Partial<Record<OptionKey, string>> = {
  'people.issuer': 'client_id = "a"\nclient_secret = "b"\n',
  'telemetry.logs_exporter': 'otlp_endpoint = "http://otel:4318"\n',
  'media.account_bytes_max': 'file_bytes_max = 1024\n',
  'media.bytes_max': 'file_bytes_max = 1024\n',
  'media.s3_url': 's3_access_key_id = "AKIA"\ns3_secret_access_key = "secret"\n',
};

const options = Object.entries(SECTIONS).flatMap(([section, table]) =>
  Object.entries<Option<unknown>>(table).map(([key, option]) => [`${section}.${key}` as OptionKey, option] as const),
);

function valuesOf(key: OptionKey, { takes }: Option<unknown>): FormatValues {
  const [toml, is, wrong] = (VALUES as Partial<Record<OptionKey, readonly [string, unknown, string]>>)[key] ?? [];
  const format = valuesOfFormat(takes);
  if (toml === undefined || wrong === undefined) {
    if (format === null) throw new Error(`VALUES needs ${key}: no values follow from its format`);
    return format;
  }
  return { right: [[toml, is]], wrong: [wrong, ...(format?.wrong ?? [])] };
}

/** Sections without a name of their own in the configuration, and the names of those that have only a URL. */
const TOP = ['server', 'telemetry'];
const URLS: Readonly<Record<string, string>> = { database: 'databaseUrl', redis: 'redisUrl' };

function valueAt(config: Config, key: OptionKey): unknown {
  const [section = '', name = ''] = key.split('.');
  if (URLS[section] !== undefined) return Reflect.get(config, URLS[section]);
  return Reflect.get(
    TOP.includes(section) ? config : (Reflect.get(config, camelKey(section)) as object),
    camelKey(name),
  );
}

const section = (key: OptionKey, value: string) => `[${key.split('.')[0]}]\n${key.split('.')[1]} = ${value}\n`;
const fileOf = (key: OptionKey, value: string) => section(key, value) + (BESIDE[key] ?? '');
/** A default as the documentation shows it: its words before those of development. */
const shown = (value: unknown) =>
  typeof value === 'bigint' ? String(Number(value) / 1e6) : Array.isArray(value) ? `[${value.join()}]` : String(value);

describe.each(options)('%s', (key, option) => {
  const { right, wrong } = valuesOf(key, option);

  test.each(right)('is set to %s by the file', (toml, is) => {
    expect(valueAt(load(fileOf(key, toml)), key)).toEqual(is);
  });

  test('has the default of the documentation', () => {
    const value = valueAt(load(''), key);
    if (value === null) expect(option.defaultText).toMatch(/[a-z]/);
    else expect(option.defaultText!.split(';')[0]!.replaceAll('`', '')).toBe(shown(value));
  });

  test.each(wrong)('refuses %s, with line and key', (value) => {
    const problems = problemsOf(fileOf(key, value));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ file: 'tollgate.toml', line: 2, key });
    expect(problems[0]!.right).not.toBe('');
  });

  test('follows std::env::NAME only where it is a secret', () => {
    const [toml, is] = right[0]!;
    const text = section(key, '"std::env::SOME_NAME"');
    const env = { SOME_NAME: toml.replaceAll('"', '') };
    if (option.secret) expect(valueAt(load(text, { env }), key)).toBe(is);
    else expect(problemsOf(text, { env })).toHaveLength(1);
  });
});

const withVariable = options.flatMap(([key, option]) =>
  option.env === null ? [] : [[option.env, key, option] as const],
);

test.each(withVariable)('%s sets %s, over the file', (variable, key, option) => {
  const [toml, is] = valuesOf(key, option).right.at(-1)!;
  const env = { [variable]: Array.isArray(is) ? is.join(', ') : toml.replaceAll('"', '') };
  const beside = BESIDE[key] === undefined ? '' : `[${key.split('.')[0]}]\n${BESIDE[key]}`;
  expect(valueAt(load(beside, { env }), key)).toEqual(is);
  expect(valueAt(load('', { env: { [variable]: '' } }), key)).toEqual(valueAt(load(''), key));
  expect(valueAt(load(fileOf(key, valuesOf(key, option).right[0]![0]), { env }), key)).toEqual(is);
});
test('a list of providers names all its wrong entries, and the forms that are right', () => {
  const wrong = `eip155:8453:0x${'aB'.repeat(20)}`;
  const cut = '8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZ';
  const right = `eip155:8453:0x${'ab'.repeat(20)}`;
  const [problem] = problemsOf(`[tunnel]\nproviders = ["Name", "${right}", "${wrong}", "${cut.slice(0, 33)}"]`);
  expect(problem).toMatchObject({
    key: 'tunnel.providers',
    wrong: expect.stringMatching(
      /"Name", which is not .*; "eip155:\S+", which has a wrong checksum.*; "8Yb\S+", which is no key/,
    ),
    right: expect.stringContaining('eip155:8453:0x') as string,
  });
});
