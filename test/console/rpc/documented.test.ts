import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RPC_ERRORS } from '../../../src/console/rpc/errors-rpc.ts';
import { streamedAt } from '../../../src/console/rpc/method-table.ts';
import { useRpcWorld } from './rpc-world.ts';

const world = useRpcWorld();
const text = readFileSync(new URL('../../../docs/reference/json-rpc.md', import.meta.url), 'utf8');

test('docs/reference/json-rpc.md lists exactly the errors of the code, with their status', () => {
  const documented = [...text.matchAll(/^\| (-\d+) \| (\d+) \| `(\w+)` \|/gm)].map(([, code, status, type]) => [
    type,
    { code: Number(code), status: Number(status) },
  ]);
  expect(Object.fromEntries(documented)).toEqual(RPC_ERRORS);
  expect(documented).toHaveLength(Object.keys(RPC_ERRORS).length);
});

test('and the methods that a gateway offers', async () => {
  const documented = [...text.matchAll(/^\| `([\w/]+)` \| [^|]*\| [^|]*\|$/gm)]
    .map(([, name]) => name)
    .filter((name) => name !== 'method');
  const { result } = await world.call('rpc.discover');
  const offered = (result!['methods'] as { name: string }[]).map(({ name }) => name);
  expect(new Set([...documented, 'rpc.discover'])).toEqual(new Set(offered));
});

test('and those that stream', () => {
  const [sentence] = /Methods that stream are refused[^]*?\.\n/.exec(text)!;
  for (const [, name] of sentence.matchAll(/`([\w/]+)`/g))
    if (name !== 'chat/completions') expect(streamedAt(name!), name).not.toBeNull();
});
