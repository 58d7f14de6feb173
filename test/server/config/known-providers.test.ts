import { readFileSync } from 'node:fs';
import { expect, it, test } from 'vitest';
import { KNOWN_PROVIDER_NAMES, KNOWN_PROVIDERS } from '../../../src/server/config/known-providers.ts';
import { block, load } from './load.ts';

const page = readFileSync(new URL('../../../docs/reference/known-providers.md', import.meta.url), 'utf8');

/** The row that the page must have for a provider. */
function rowOf(use: (typeof KNOWN_PROVIDER_NAMES)[number]): string {
  const { base, baseVariable, keyVariables, wires = [], lists, prices, sdk } = KNOWN_PROVIDERS[use];
  const code = (text: string) => `\`${text}\``;
  const address =
    sdk !== undefined
      ? `the package ${code(sdk)}`
      : base === null
        ? `yours, in ${code('api_base')}`
        : `${code(base)}${baseVariable === undefined ? '' : `, or ${code(baseVariable)}`}`;
  const models = lists === null ? 'named in `only`' : prices === null ? 'listed, priced by you' : 'listed';
  const keys = keyVariables.map(code).join(', ') || 'none';
  return `| ${code(use)} | ${keys} | ${address} | ${['chat', ...wires].join(', ')} | ${models} |`;
}

it('the table of docs/reference/known-providers.md is that of the known providers', () => {
  const rows = page.split('\n').filter((line) => /^\| `(?!use`)[a-z]+` \|/.test(line));
  expect(rows).toEqual(KNOWN_PROVIDER_NAMES.map(rowOf));
});

interface Stops {
  readonly stops?: 'streams' | false;
}

const OPENAI = 'https://api.openai.com/v1';
test.each<[block: 'models' | 'images', base: string, said: string | null, stops: 'streams' | false | undefined]>([
  ['models', OPENAI, null, 'streams'],
  ['models', 'https://API.OpenAI.com:443', null, 'streams'],
  ['models', OPENAI, 'true', undefined],
  ['models', OPENAI, 'false', false],
  ['images', OPENAI, null, 'streams'],
  ['models', 'https://api.mistral.ai/v1', null, false],
  ['models', 'https://generativelanguage.googleapis.com/v1beta/openai', null, false],
  ['models', 'https://acme.openai.azure.com/openai/v1', null, 'streams'],
  ['models', 'https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1', null, false],
  ['models', 'http://127.0.0.1:11434/v1', null, undefined],
  ['models', 'https://api.openai.com.example/v1', null, undefined],
  ['models', 'https://proxy.example/api.openai.com', null, undefined],
])('a block of %s at %s that says of stops %s has %s', (table, base, said, stops) => {
  const [listed] = load(
    block(table, { 'params.api_base': `"${base}"`, ...(said === null ? {} : { stops: said }) }),
  ).services;
  const { model, media } = listed!.service as { model?: Stops; media?: Stops };
  expect((model ?? media)!.stops).toBe(stops);
});
