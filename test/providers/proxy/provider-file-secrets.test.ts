import { expect, test } from 'vitest';
import { ConfigError } from '#config';
import { block } from '../../server/config/load.ts';
import { providerProblemsOf as problemsOf } from './load.ts';

const CANARY = 'canary7f3a';
const NO_SECRET = [`"env::${CANARY}"`, `"std::env::${CANARY}-9"`, `["${CANARY}"]`, `{ ${CANARY} = 1 }`];
/** And what no header can carry. */
const NO_KEY = [...NO_SECRET, `"${CANARY} with spaces"`, `"${CANARY}\\u0000"`];

const router = (line: string) => `[router]\nurl = "https://r.example"\n${line}\n${block('models')}`;
const siwx = (line: string) => router(`[router.siwx]\nchain_id = "eip155:1"\n${line}`);

const FIELDS: readonly (readonly [key: string, wrong: readonly string[], text: (value: string) => string])[] = [
  ['router.api_key', NO_KEY, (value) => router(`api_key = ${value}`)],
  ['router.siwx.private_key', NO_SECRET, (value) => siwx(`private_key = ${value}`)],
  [
    'router.siwx.chain_id',
    [`"${CANARY}"`],
    (value) => router(`[router.siwx]\nchain_id = ${value}\nkeypair_file = "k"`),
  ],
  ['models.params.api_key', NO_KEY, (value) => block('models', { 'params.api_key': value })],
  ['tools.api_key', NO_KEY, (value) => block('tools', { api_key: value })],
  ['tools.env', NO_SECRET, (value) => block('tools', { endpoint: null, command: '"x"', 'env.A': value })],
  ['agents.api_key', NO_KEY, (value) => block('agents', { api_key: value })],
  ['images.params.api_key', NO_KEY, (value) => block('images', { 'params.api_key': value })],
  ['videos.params.api_key', NO_KEY, (value) => block('videos', { 'params.api_key': value })],
];
const cases = FIELDS.flatMap(([key, wrong, text]) => wrong.map((value) => [key, value, text] as const));

test.each(cases)('%s = %s is refused without its value', (_key, value, text) => {
  expect(new ConfigError(problemsOf(text(value))).message).not.toContain(CANARY);
});

test('values that references lead to are not shown', () => {
  const env = { LEAK: `${CANARY} with spaces` };
  const text = `[router]\nurl = "https://r.example"\napi_key = "std::env::LEAK"\n${block('agents', { api_key: '"std::env::LEAK"', name: '"std::env::LEAK"' })}`;
  const problems = problemsOf(text, { env });
  expect(problems).toHaveLength(3);
  expect(new ConfigError(problems).message).not.toContain(CANARY);
});
