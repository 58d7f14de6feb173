import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KNOWN_PROVIDER_NAMES, KNOWN_PROVIDERS } from '../../../src/server/config/known-providers.ts';

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
