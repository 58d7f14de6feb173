import { expect, test } from 'vitest';
import { SECTIONS } from '../../../src/server/config/options.ts';
import { ConfigError } from '../../../src/server/config/problem.ts';
import { modelBlock, problemsOf } from './load.ts';

const CANARY = 'canary7f3a';

/** Wrong in every secret field, whatever it asks for. */
const HOSTILE = [
  `${CANARY} with spaces`,
  `${CANARY}\\nline`,
  `ftp://ü@${CANARY}`,
  `std::env::${CANARY}-9`,
  `env::${CANARY}`,
];

const secretKeys = Object.entries(SECTIONS).flatMap(([section, options]) =>
  Object.entries(options).flatMap(([key, { secret }]) => (secret ? [`${section}.${key}`] : [])),
);

test('there are secrets to test', () => {
  expect(secretKeys).toEqual([
    'server.admin_key',
    'server.identity_seed',
    'server.second_identity_seed',
    'people.client_secret',
    'cluster.secret',
    'database.url',
    'redis.url',
    'telemetry.otlp_headers',
    'telemetry.metrics_key',
    'media.s3_secret_access_key',
    'alerts.url',
    'alerts.secret',
  ]);
});

test.each(secretKeys.flatMap((key) => HOSTILE.map((value) => [key, value] as const)))(
  '%s = %j is refused without its value',
  (key, value) => {
    const [section, name] = key.split('.');
    expect(new ConfigError(problemsOf(`[${section}]\n${name} = "${value}"`)).message).not.toContain(CANARY);
  },
);

test.each([
  ['media.s3_url', `https://:${CANARY}@s3.example/films`],
  ['media.s3_url', `https://me:${CANARY}@s3.example/films`],
  ['server.public_url', `https://me:${CANARY}@gateway.example`],
  ['server.public_url', `https://me:${CANARY}@no host`],
  ['telemetry.otlp_endpoint', `ftp://me:${CANARY}@collector.example`],
])('%s = %j is refused without its password', (key, value) => {
  const [section, name] = key.split('.');
  const problems = problemsOf(`[${section}]\n${name} = "${value}"`);
  expect(problems).toMatchObject([{ key }]);
  expect(new ConfigError(problems).message).not.toContain(CANARY);
});

test.each(HOSTILE.filter((value) => !value.startsWith('ftp')))(
  'models.params.api_key = %j is refused without its value',
  (value) => {
    expect(new ConfigError(problemsOf(modelBlock({ 'params.api_key': `"${value}"` }))).message).not.toContain(CANARY);
  },
);

test('a value that a reference leads to is not shown either', () => {
  const env = { LEAK: `${CANARY} with spaces`, DATABASE_URL: `mysql://u:${CANARY}@h` };
  const text = `[server]\nadmin_key = "std::env::LEAK"\n${modelBlock({ 'params.api_key': '"std::env::LEAK"' })}`;
  const problems = problemsOf(text, { env });
  expect(problems).toHaveLength(3);
  expect(new ConfigError(problems).message).not.toContain(CANARY);
});

test.each(['name', 'display_name', 'provider_name', 'params.model', 'params.api_base', 'pricing.prompt'])(
  '%s follows no reference',
  (key) => {
    const problems = problemsOf(modelBlock({ [key]: '"std::env::LEAK"' }), { env: { LEAK: CANARY } });
    expect(problems).toMatchObject([{ key: `models[0].${key}`, right: expect.stringContaining('for secrets only') }]);
    expect(new ConfigError(problems).message).not.toContain(CANARY);
  },
);
