import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { indexLines, parseToml, readBlocks } from '#config';
import { MAX_COST_META } from '#call';
import { A2A_ERRORS, A2A_GATEWAY_ERRORS } from '../../src/a2a/wire/errors.ts';

const root = new URL('../../', import.meta.url);
const text = ['reference/a2a', 'sell/agents']
  .map((page) => readFileSync(new URL(`docs/${page}.md`, root), 'utf8'))
  .join('\n');
const rows = (pattern: RegExp) => [...text.matchAll(pattern)];

test('docs/reference/a2a.md lists exactly the errors of the code, with their status on each binding', () => {
  const documented = rows(/^\| (-\d+) \| (\d+) \| (\d+) \| `(\w+)` \|/gm).map(([, code, rpc, rest, type]) => [
    type,
    [code, rpc, rest].map(Number),
  ]);
  const known = Object.entries(A2A_GATEWAY_ERRORS).map(([type, { code, rpcStatus, status }]) => [
    type,
    [code, rpcStatus, status],
  ]);
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(known));
  expect(documented).toHaveLength(known.length);
});

test('and those of the protocol', () => {
  const documented = rows(/^\| (-\d+) \| [^\d]/gm).map(([, code]) => Number(code));
  expect(new Set(documented)).toEqual(new Set(Object.values(A2A_ERRORS).map(({ code }) => code)));
  expect(documented).toHaveLength(Object.keys(A2A_ERRORS).length);
});

test('and every name of metadata that is read or written', () => {
  const named = new Set<string>();
  for (const file of readdirSync(new URL('src/a2a', root), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const source = readFileSync(new URL(`src/a2a/${file}`, root), 'utf8');
    for (const [, name] of source.matchAll(/['"`](tollgate\/[a-z_]+)['"`]/g)) named.add(name!);
    // Every wire has this one, by its name in src/gateway/call.
    if (source.includes('MAX_COST_META')) named.add(MAX_COST_META);
  }
  // What is kept of a message that was answered is nobody's to see.
  named.delete('tollgate/task');
  const documented = rows(/^\| `(tollgate\/[a-z_]+)` \|/gm).map(([, name]) => name);
  expect(new Set(documented)).toEqual(named);
});

test('and blocks that a provider can have in its file', () => {
  const [block, pricing] = rows(/^```toml\n([\s\S]*?)^```/gm).map(([, found]) => found!);
  for (const file of [block!, `${block!.split('\n[agents.pricing]')[0]}\n${pricing}`]) {
    const reading = { file: null, lineOf: indexLines(file), env: { ACME_API_KEY: 'a-key' }, problems: [] };
    expect(
      readBlocks(
        parseToml(file, null),
        { commands: true, directory: '/', packages: true },
        { max: 3, oneProvider: true },
        reading,
      ),
    ).toHaveLength(1);
    expect(reading.problems).toEqual([]);
  }
});
