import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MODEL_KINDS, type ModelKind, tableRows, triedPackages, type TriedPackage } from './support/kinds-table.ts';

// The page about packages has a table of what was tried, and nothing that a package can do is left out of it.

const PAGE = readFileSync(new URL('../../../docs/reference/ai-sdk.md', import.meta.url), 'utf8');
const MANIFEST = readFileSync(new URL('../../packages/package.json', import.meta.url), 'utf8');
const A_CLIENT = 'mcp';

test('the table of the page is what the tests of this folder call', () => {
  const rows = PAGE.split('\n').filter((line) => line.startsWith('| `@ai-sdk/'));
  expect(rows.map((row) => row.replaceAll(/ +/g, ' '))).toEqual(tableRows().map((row) => row.replaceAll(/ +/g, ' ')));
});

test('each package that is installed is called', () => {
  const { dependencies } = JSON.parse(MANIFEST) as { dependencies: Readonly<Record<string, string>> };
  const installed = Object.keys(dependencies).flatMap((name) => /^@ai-sdk\/(.+)$/.exec(name)?.[1] ?? []);
  expect(triedPackages().map(({ name }) => name)).toEqual(
    installed.filter((name) => name !== A_CLIENT).toSorted((a, b) => a.localeCompare(b, 'en')),
  );
});

/** Whether a provider has models of a kind. It says of those that it does not have that there is no such model. */
function has(provider: Readonly<Record<string, unknown>>, kind: ModelKind): boolean {
  const make = provider[`${kind}Model`] ?? provider[kind];
  if (typeof make !== 'function') return false;
  try {
    (make as (id: string) => unknown).call(provider, 'any');
    return true;
  } catch (error) {
    return !/NoSuchModel/.test((error as Error).name);
  }
}

async function kindsOf({ entry, settings, secrets }: TriedPackage): Promise<readonly ModelKind[]> {
  const exported = (await import(entry)) as Readonly<Record<string, unknown>>;
  const [, create] = Object.entries(exported).find(([name]) => /^create[A-Z]/.test(name))!;
  const given = { ...settings('http://127.0.0.1:1'), ...Object.fromEntries(secrets.map((name) => [name, 'key'])) };
  const provider = (create as (given: object) => Readonly<Record<string, unknown>>)(given);
  return MODEL_KINDS.filter((kind) => has(provider, kind));
}

test.each(triedPackages())('all kinds of models of @ai-sdk/$name are called', async (tried) => {
  expect(MODEL_KINDS.filter((kind) => tried.kinds[kind] !== undefined)).toEqual(await kindsOf(tried));
});
