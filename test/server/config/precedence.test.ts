import { expect, test } from 'vitest';
import { load, problemsOf } from './load.ts';

const FILE = '[server]\nport = 2000\nhost = "10.0.0.1"\n';

test('flags win over the environment, the environment over the file, the file over the default', () => {
  const env = { PORT: '3000' };
  expect(load('').port).toBe(8402);
  expect(load(FILE).port).toBe(2000);
  expect(load(FILE, { env }).port).toBe(3000);
  expect(load(FILE, { env, overrides: { 'server.port': '4000' } }).port).toBe(4000);
  expect(load(FILE, { env, overrides: { 'server.port': 4000 } }).port).toBe(4000);
  expect(load(FILE, { env, overrides: { 'server.port': undefined } }).port).toBe(3000);
  expect(load(FILE, { env }).host).toBe('10.0.0.1');
});

test('an empty variable counts as absent', () => {
  expect(load(FILE, { env: { PORT: '', HOST: '' } })).toMatchObject({ port: 2000, host: '10.0.0.1' });
});

test.each(['-1', '1e3', '80 ', '0x50', '99999', 'port'])('PORT=%s is refused by name', (PORT) => {
  expect(problemsOf('', { env: { PORT } })).toMatchObject([
    { file: null, line: null, key: 'environment variable PORT' },
  ]);
});

test('a flag is refused by the option it sets', () => {
  expect(problemsOf('', { overrides: { 'server.log_level': 'loud' } })).toMatchObject([{ key: '--log-level' }]);
});

test('what the file says must be right even where it is overridden', () => {
  expect(problemsOf('[server]\nport = 99999', { env: { PORT: '1' } })).toMatchObject([{ key: 'server.port' }]);
});

test('an identity seed may be base64 of either alphabet', () => {
  const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));
  for (const TOLLGATE_IDENTITY_SEED of [bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')]) {
    expect(load('', { env: { TOLLGATE_IDENTITY_SEED } }).identitySeed).toBe(bytes.toString('hex'));
  }
});
