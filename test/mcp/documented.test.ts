import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { indexLines, parseToml, readBlocks } from '#config';
import { MCP_ERRORS } from '../../src/mcp/wire/errors-mcp.ts';
import { ERROR } from '../../src/mcp/wire/revisions.ts';
import { OWN } from '../../src/mcp/own/aggregate/own-tools.ts';

const root = new URL('../../', import.meta.url);
const text = ['reference/mcp', 'use/all-tools', 'sell/tools']
  .map((page) => readFileSync(new URL(`docs/${page}.md`, root), 'utf8'))
  .join('\n');
const rows = (pattern: RegExp) => [...text.matchAll(pattern)];

test('docs/reference/mcp.md lists exactly the errors of the code, with their status', () => {
  const documented = rows(/^\| (-\d+) \| (\d+) \| `(\w+)` \|/gm).map(([, code, status, type]) => [
    type,
    { code: Number(code), status: Number(status) },
  ]);
  expect(Object.fromEntries(documented)).toEqual(MCP_ERRORS);
  expect(documented).toHaveLength(Object.keys(MCP_ERRORS).length);
});

test('and those of the protocol', () => {
  const documented = rows(/^\| (-\d+) \| [^\d]/gm).map(([, code]) => Number(code));
  expect(new Set(documented)).toEqual(new Set(Object.values(ERROR)));
  expect(documented).toHaveLength(Object.keys(ERROR).length);
});

test('and every name of _meta that is the gateway’s', () => {
  const named = new Set<string>();
  for (const file of readdirSync(new URL('src/mcp', root), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const source = readFileSync(new URL(`src/mcp/${file}`, root), 'utf8');
    for (const [, name] of source.matchAll(/['"`]((?:tollgate|x402)\/[a-z-]+)['"`]/g)) named.add(name!);
  }
  const documented = rows(/^\| `((?:tollgate|x402)\/[a-z-]+)` \|/gm).map(([, name]) => name);
  expect(new Set(documented)).toEqual(named);
});

test('and the tools of the gateway’s own', () => {
  expect(rows(/^\| `((?:find|call|ask|generate)_\w+)` \|/gm).map(([, name]) => name)).toEqual(Object.values(OWN));
});

test('and blocks that a provider can have in its file, all of them together', () => {
  const file = rows(/^```toml\n([\s\S]*?)^```/gm)
    .map(([, block]) => block)
    .join('\n');
  const reading = { file: null, lineOf: indexLines(file), env: { ACME_API_KEY: 'a-key' }, problems: [] };
  expect(
    readBlocks(
      parseToml(file, null),
      { commands: true, directory: '/', packages: true },
      { max: 3, oneProvider: true },
      reading,
    ),
  ).toHaveLength(3);
  expect(reading.problems).toEqual([]);
});
