import { describe, expect, test } from 'vitest';
import type { Option } from '../../../src/server/config/option.ts';
import { SECTIONS, type OptionKey } from '../../../src/server/config/options.ts';
import { BATCH_CASES } from './batch-cases.ts';
import { LIMIT_CASES } from './limit-cases.ts';
import { load, problemsOf } from './load.ts';
import { MEDIA_CASES } from './media-option-cases.ts';
import type { Case } from './option-case.ts';
import { OAUTH_CASES } from './oauth-option-cases.ts';
import { PAYMENT_CASES } from './payment-option-cases.ts';
import { TUNNEL_CASES } from './tunnel-option-cases.ts';

const seed = '0123456789abcdef'.repeat(4);

/** Every option is set by one case: the compiler asks for a new one with a new option. */
const CASES = {
  'server.host': { toml: '"0.0.0.0"', wrong: '"a b"', of: (c) => c.host, is: '0.0.0.0', fallback: '127.0.0.1' },
  'server.port': { toml: '9000', wrong: '65536', of: (c) => c.port, is: 9000, fallback: 8402 },
  'server.data_dir': { toml: '"/srv/gate"', wrong: '""', of: (c) => c.dataDir, is: '/srv/gate', fallback: '.tollgate' },
  'server.log_level': { toml: '"debug"', wrong: '"loud"', of: (c) => c.logLevel, is: 'debug', fallback: 'info' },
  'server.admin_key': {
    toml: `"${seed}"`,
    wrong: '"only-31-characters-are-too-few-"',
    of: (c) => c.adminKey,
    is: seed,
    fallback: null,
  },
  'server.admin_networks': {
    toml: '["10.0.0.0/8", "::1"]',
    text: '10.0.0.0/8, ::1',
    wrong: '["10.0.0.0/33"]',
    of: (c) => c.adminNetworks.join(),
    is: '10.0.0.0/8,::1',
    fallback: '',
  },
  'server.identity_seed': {
    toml: `"${seed.toUpperCase()}"`,
    wrong: '"00"',
    of: (c) => c.identitySeed,
    is: seed,
    fallback: null,
  },
  'server.trusted_proxies': {
    toml: '["10.0.0.0/8", "::1"]',
    text: '10.0.0.0/8, ::1',
    wrong: '["10.0.0.0/33"]',
    of: (c) => c.trustedProxies.join(),
    is: '10.0.0.0/8,::1',
    fallback: '',
  },
  'server.public_url': {
    toml: '"https://gate.example:8402/"',
    wrong: '"https://gate.example/path"',
    of: (c) => c.signIn.domains.join(),
    is: 'gate.example:8402',
    fallback: '',
  },
  'server.marketplace_url': {
    toml: '"https://market.example/services"',
    wrong: '"market.example"',
    of: (c) => c.marketplaceUrl,
    is: 'https://market.example/services',
    fallback: null,
  },
  'server.dashboard_url': {
    toml: '"https://account.example"',
    wrong: '"ftp://account.example"',
    of: (c) => c.dashboardUrl,
    is: 'https://account.example',
    fallback: null,
  },
  'server.allowed_hosts': {
    toml: '["gate.internal", "[fd00::1]"]',
    text: 'gate.internal, [fd00::1]',
    wrong: '["gate.internal:8402"]',
    of: (c) => c.allowedHosts.join(),
    is: 'gate.internal,[fd00::1]',
    fallback: '',
  },
  'server.cors_origins': {
    toml: '["https://app.example", "*"]',
    text: 'https://app.example, *',
    wrong: '["https://app.example/path"]',
    of: (c) => c.corsOrigins.join(),
    is: 'https://app.example,*',
    fallback: '',
  },
  'server.allowed_origins': {
    toml: '["https://app.example", "vscode-webview://panel", "null"]',
    text: 'https://app.example, vscode-webview://panel, null',
    wrong: '["https://app.example/"]',
    of: (c) => c.allowedOrigins.join(),
    is: 'https://app.example,vscode-webview://panel,null',
    fallback: '',
  },
  'sign_in.domains': {
    toml: '["a.example", "b.example:8402"]',
    text: 'a.example, b.example:8402',
    wrong: '["A.example"]',
    of: (c) => c.signIn.domains.join(),
    is: 'a.example,b.example:8402',
    fallback: '',
  },
  'sign_in.lifetime_ms_max': {
    toml: '5_000',
    wrong: '86_400_001',
    of: (c) => c.signIn.lifetimeMsMax,
    is: 5_000,
    fallback: 3_600_000,
  },
  'sign_in.skew_ms': { toml: '0', wrong: '-1', of: (c) => c.signIn.skewMs, is: 0, fallback: 30_000 },
  'sign_in.failures_per_minute': { toml: '7', wrong: '0', of: (c) => c.signIn.failuresPerMinute, is: 7, fallback: 120 },
  'sessions.idle_ms': {
    toml: '60_000',
    wrong: '59_999',
    of: (c) => c.sessions.idleMs,
    is: 60_000,
    fallback: 43_200_000,
  },
  'sessions.lifetime_ms': {
    toml: '60_000',
    wrong: '59_999',
    of: (c) => c.sessions.lifetimeMs,
    is: 60_000,
    fallback: 604_800_000,
  },
  'sessions.admin_lifetime_ms': {
    toml: '60_000',
    wrong: '86_400_001',
    of: (c) => c.sessions.adminLifetimeMs,
    is: 60_000,
    fallback: 3_600_000,
  },
  ...OAUTH_CASES,
  ...TUNNEL_CASES,
  'cluster.url': {
    toml: '"https://10.0.0.1:8403/"',
    wrong: '"http://10.0.0.1"',
    of: (c) => c.cluster.url,
    is: 'https://10.0.0.1:8403',
    fallback: null,
  },
  'cluster.host': {
    toml: '"0.0.0.0"',
    wrong: '"a b"',
    of: (c) => c.cluster.host,
    is: '0.0.0.0',
    fallback: '127.0.0.1',
  },
  'cluster.port': { toml: '9000', wrong: '65536', of: (c) => c.cluster.port, is: 9000, fallback: 8403 },
  'cluster.secret': { toml: `"${seed}"`, wrong: '"short"', of: (c) => c.cluster.secret, is: seed, fallback: null },
  'database.url': {
    toml: '"postgres://u:p@db/t"',
    wrong: '"mysql://db"',
    of: (c) => c.databaseUrl,
    is: 'postgres://u:p@db/t',
    fallback: null,
  },
  'redis.url': {
    toml: '"rediss://r:6379/1"',
    wrong: '"http://r"',
    of: (c) => c.redisUrl,
    is: 'rediss://r:6379/1',
    fallback: null,
  },
  'telemetry.metrics': { toml: '"open"', wrong: '"closed"', of: (c) => c.metrics, is: 'open', fallback: 'admin' },
  'telemetry.logs_exporter': {
    toml: '"none"',
    wrong: '"console"',
    of: (c) => c.logsExporter,
    is: 'none',
    fallback: 'none',
  },
  'telemetry.otlp_headers': {
    toml: '"authorization=Basic%20abc,x-tenant=me"',
    wrong: '"authorization: Basic abc"',
    of: (c) => c.otlpHeaders,
    is: 'authorization=Basic%20abc,x-tenant=me',
    fallback: null,
  },
  'telemetry.otlp_endpoint': {
    toml: '"http://otel:4318/"',
    wrong: '"otel:4318"',
    of: (c) => c.otlpEndpoint,
    is: 'http://otel:4318',
    fallback: null,
  },
  ...LIMIT_CASES,
  'billing.own_key_bps': {
    toml: '300',
    wrong: '10_001',
    of: (c) => c.billing.ownKeyBps,
    is: 300,
    fallback: 500,
  },
  'billing.fee_bps': { toml: '250', wrong: '10_001', of: (c) => c.billing.feeBps, is: 250, fallback: 0 },
  'billing.drain_ms': { toml: '10', wrong: '-5', of: (c) => c.billing.drainMs, is: 10, fallback: 30_000 },
  'billing.drain_bytes': {
    toml: '10',
    wrong: 'inf',
    of: (c) => c.billing.drainBytes,
    is: 10,
    fallback: 16 * 1024 * 1024,
  },
  'billing.sweep_ms': { toml: '100', wrong: '0', of: (c) => c.billing.sweepMs, is: 100, fallback: 10_000 },
  'billing.receipts': {
    toml: '"always"',
    wrong: '"never"',
    of: (c) => c.billing.receipts,
    is: 'always',
    fallback: 'on-request',
  },
  'billing.run_cost_max': {
    toml: '0.25',
    wrong: '-1',
    of: (c) => c.billing.runCostMax,
    is: 250_000n,
    fallback: 1_000_000n,
  },
  'mcp.sessions_max': { toml: '7', wrong: '0', of: (c) => c.mcp.sessionsMax, is: 7, fallback: 100 },
  'mcp.sessions_in_memory_max': {
    toml: '7',
    wrong: '1_000_001',
    of: (c) => c.mcp.sessionsInMemoryMax,
    is: 7,
    fallback: 20_000,
  },
  'mcp.session_idle_ms': {
    toml: '10_000',
    wrong: '9_999',
    of: (c) => c.mcp.sessionIdleMs,
    is: 10_000,
    fallback: 1_800_000,
  },
  'tasks.ttl_ms': { toml: '5_000', wrong: '999', of: (c) => c.tasks.ttlMs, is: 5_000, fallback: 86_400_000 },
  'tasks.retention_ms': {
    toml: '5_000',
    wrong: '"1 d"',
    of: (c) => c.tasks.retentionMs,
    is: 5_000,
    fallback: 604_800_000,
  },
  'tasks.live_max': { toml: '5', wrong: '0', of: (c) => c.tasks.liveMax, is: 5, fallback: 1_000 },
  'tasks.look_ms_max': { toml: '1_000', wrong: '3_600_001', of: (c) => c.tasks.lookMsMax, is: 1_000, fallback: 60_000 },
  'webhooks.allow_private': {
    toml: 'true',
    wrong: '"yes"',
    of: (c) => c.webhooks.allowPrivate,
    is: true,
    fallback: false,
  },
  ...MEDIA_CASES,
  ...PAYMENT_CASES,
  'upstream.head_timeout_ms': {
    toml: '500',
    wrong: '9',
    of: (c) => c.upstream.headTimeoutMs,
    is: 500,
    fallback: 300_000,
  },
  'upstream.idle_timeout_ms': {
    toml: '500',
    wrong: '9',
    of: (c) => c.upstream.idleTimeoutMs,
    is: 500,
    fallback: 120_000,
  },
  'upstream.call_timeout_ms': {
    toml: '500',
    wrong: '9',
    of: (c) => c.upstream.callTimeoutMs,
    is: 500,
    fallback: 600_000,
  },
  'upstream.attempts_max': { toml: '2', wrong: '4', of: (c) => c.upstream.attemptsMax, is: 2, fallback: 3 },
  'upstream.reply_bytes_max': {
    toml: '4096',
    wrong: '1',
    of: (c) => c.upstream.replyBytesMax,
    is: 4096,
    fallback: 8 * 1024 * 1024,
  },
  'upstream.images_reply_bytes_max': {
    toml: '4096',
    wrong: '1',
    of: (c) => c.upstream.imagesReplyBytesMax,
    is: 4096,
    fallback: 64 * 1024 * 1024,
  },
  'upstream.replies_bytes_max': {
    toml: '1048576',
    wrong: '1',
    of: (c) => c.upstream.repliesBytesMax,
    is: 1024 * 1024,
    fallback: 128 * 1024 * 1024,
  },
  'upstream.connections_max': { toml: '2', wrong: '0', of: (c) => c.upstream.connectionsMax, is: 2, fallback: 2048 },
  'upstream.price_spread_max': { toml: '3', wrong: '0', of: (c) => c.upstream.priceSpreadMax, is: 3, fallback: 10 },
  'upstream.cooldown_ms': { toml: '0', wrong: '1979-05-27', of: (c) => c.upstream.cooldownMs, is: 0, fallback: 30_000 },
  'analytics.public': {
    toml: '"delayed"',
    wrong: '"later"',
    of: (c) => c.analytics.public,
    is: 'delayed',
    fallback: 'on',
  },
  'analytics.users_min': { toml: '5', wrong: '-1', of: (c) => c.analytics.usersMin, is: 5, fallback: 0 },
  'analytics.retention_days': { toml: '90', wrong: '30', of: (c) => c.analytics.retentionDays, is: 90, fallback: 400 },
  'analytics.every_ms': { toml: '0', wrong: '-1', of: (c) => c.analytics.everyMs, is: 0, fallback: 2_000 },
  'alerts.url': {
    toml: '"https://hooks.example.com/T0/key"',
    wrong: '"ftp://hooks.example.com"',
    of: (c) => c.alerts.url,
    is: 'https://hooks.example.com/T0/key',
    fallback: null,
  },
  'alerts.secret': {
    toml: '"a-secret-of-the-alerts"',
    wrong: '"short"',
    of: (c) => c.alerts.secret,
    is: 'a-secret-of-the-alerts',
    fallback: null,
  },
  'alerts.level': { toml: '"warn"', wrong: '"info"', of: (c) => c.alerts.level, is: 'warn', fallback: 'error' },
  'packages.wall': {
    toml: '"required"',
    wrong: '0',
    of: (c) => c.packages.wall,
    is: 'required',
    fallback: 'if_available',
  },
  'quotes.valid_ms': { toml: '60_000', wrong: '59_999', of: (c) => c.quotes.validMs, is: 60_000, fallback: 300_000 },
  'responses.keep_ms': { toml: '0', wrong: '-1', of: (c) => c.responses.keepMs, is: 0, fallback: 86_400_000 },
  'responses.account_bytes_max': {
    toml: '65_536',
    wrong: '65_535',
    of: (c) => c.responses.accountBytesMax,
    is: 65_536,
    fallback: 64 * 1024 ** 2,
  },
  'responses.account_count_max': {
    toml: '1',
    wrong: '0',
    of: (c) => c.responses.accountCountMax,
    is: 1,
    fallback: 10_000,
  },
  'responses.bytes_max': {
    toml: '65_536',
    wrong: '65_535',
    of: (c) => c.responses.bytesMax,
    is: 65_536,
    fallback: 4 * 1024 ** 3,
  },
  'responses.background_count_max': {
    toml: '1',
    wrong: '0',
    of: (c) => c.responses.backgroundCountMax,
    is: 1,
    fallback: 100,
  },
  ...BATCH_CASES,
} as const satisfies Record<OptionKey, Case>;

const OPTIONS = new Map(
  Object.entries(SECTIONS).flatMap(([name, options]) =>
    Object.entries<Option<unknown>>(options).map(([key, option]) => [`${name}.${key}`, option]),
  ),
);

const section = (key: OptionKey, value: string) => `[${key.split('.')[0]}]\n${key.split('.')[1]} = ${value}\n`;
const withBeside = (key: OptionKey, { toml, beside = '' }: Case) => section(key, toml) + beside;
const textOf = ({ toml, text }: Case) => text ?? toml.replaceAll('"', '');

const cases = Object.entries<Case>(CASES) as [OptionKey, Case][];

describe.each(cases)('%s', (key, one) => {
  const { wrong, of, is, fallback, beside = '' } = one;

  test('is set by the file', () => {
    expect(of(load(withBeside(key, one)))).toBe(is);
  });

  test('has its default without it', () => {
    expect(of(load(''))).toBe(fallback);
  });

  test('refuses a wrong value, with line and key', () => {
    const problems = problemsOf(section(key, wrong) + beside);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ file: 'tollgate.toml', line: 2, key });
    expect(problems[0]!.right).not.toBe('');
  });

  test('follows std::env::NAME only where it is a secret', () => {
    const text = section(key, '"std::env::SOME_NAME"');
    const env = { SOME_NAME: textOf(one) };
    if (OPTIONS.get(key)!.secret) expect(of(load(text, { env }))).toBe(is);
    else expect(problemsOf(text, { env })).toHaveLength(1);
  });
});

const withVariable = cases.flatMap(([key, one]) =>
  OPTIONS.get(key)!.env === null ? [] : [[OPTIONS.get(key)!.env!, key, one] as const],
);

test.each(withVariable)('%s sets %s, over the file', (variable, key, one) => {
  const { of, is, fallback, beside } = one;
  const env = { [variable]: textOf(one) };
  expect(of(load(beside === undefined ? '' : `[${key.split('.')[0]}]\n${beside}`, { env }))).toBe(is);
  expect(of(load('', { env: { [variable]: '' } }))).toBe(fallback);
  expect(of(load(withBeside(key, one), { env }))).toBe(is);
});

test('the environment variables are these', () => {
  expect(withVariable.map(([variable]) => variable)).toEqual([
    'HOST',
    'PORT',
    'TOLLGATE_DATA',
    'TOLLGATE_LOG_LEVEL',
    'TOLLGATE_ADMIN_KEY',
    'TOLLGATE_ADMIN_NETWORKS',
    'TOLLGATE_IDENTITY_SEED',
    'TOLLGATE_TRUSTED_PROXIES',
    'TOLLGATE_PUBLIC_URL',
    'TOLLGATE_MARKETPLACE_URL',
    'TOLLGATE_DASHBOARD_URL',
    'TOLLGATE_ALLOWED_HOSTS',
    'TOLLGATE_CORS_ORIGINS',
    'TOLLGATE_ALLOWED_ORIGINS',
    'TOLLGATE_SIGN_IN_DOMAINS',
    'TOLLGATE_OAUTH_ISSUER',
    'TOLLGATE_OAUTH_AUDIENCE',
    'TOLLGATE_PROVIDERS',
    'TOLLGATE_CLUSTER_URL',
    'TOLLGATE_CLUSTER_HOST',
    'TOLLGATE_CLUSTER_PORT',
    'TOLLGATE_CLUSTER_SECRET',
    'DATABASE_URL',
    'REDIS_URL',
    'OTEL_LOGS_EXPORTER',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'TOLLGATE_SHUTDOWN_DELAY_MS',
    'TOLLGATE_S3_URL',
    'TOLLGATE_S3_ACCESS_KEY_ID',
    'TOLLGATE_S3_SECRET_ACCESS_KEY',
    'TOLLGATE_ALERTS_URL',
    'TOLLGATE_ALERTS_SECRET',
  ]);
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
