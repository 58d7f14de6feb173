import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findCircles, findFolderCircles } from './circles.ts';
import { floorOf, FLOORS, PATHS } from './floors.ts';
import { checkImports, importsOf, MODULES } from './import-rules.ts';
import { readTree, ROOT } from './source.ts';

const { imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { imports: Record<string, string> };
const aliases = Object.keys(imports);
const check = (path: string, text: string) => checkImports([{ path, text }], aliases);

test('every import in src follows the import table', () => {
  const files = readTree(['src'], ['.ts', '.mts', '.js', '.mjs']);
  expect(files.length).toBeGreaterThan(10);
  expect(files.flatMap(importsOf).length).toBeGreaterThan(20);
  expect(checkImports(files, aliases)).toEqual([]);
});

test('every alias leads to the public API of a module of the table', () => {
  for (const [alias, target] of Object.entries(imports)) {
    const [module, narrower] = alias.slice(1).split('/');
    expect(MODULES).toHaveProperty(module!);
    // A module of one file is its own public API.
    if (target === `./${PATHS[module!]}`) continue;
    // A narrower public API is for those who must not load the whole module.
    expect(target.startsWith(`./${PATHS[module!]}/`), alias).toBe(true);
    expect(
      narrower
        ? [`/${narrower}.ts`, `/${narrower}/index.ts`].some((end) => target.endsWith(end))
        : target === `./${PATHS[module!]}/index.ts`,
      alias,
    ).toBe(true);
  }
});

test('every module has its floor, and a floor imports only floors above it', () => {
  const floors = Object.keys(FLOORS);
  expect(Object.keys(MODULES)).toEqual(Object.keys(PATHS));
  for (const [module, { modules }] of Object.entries(MODULES)) {
    const own = floorOf(module);
    if (own === undefined) continue;
    for (const other of modules)
      expect
        .soft(floors.indexOf(floorOf(other.split('/')[0]!)!), `${module} (${own}) imports ${other}`)
        .toBeLessThanOrEqual(floors.indexOf(own));
  }
});

test('no module imports one below it in the table, so no import runs upward and none in a circle', () => {
  const order = Object.keys(MODULES);
  for (const [module, { modules, starts = [] }] of Object.entries(MODULES)) {
    for (const other of modules) {
      expect(order, module).toContain(other.split('/')[0]);
      expect
        .soft(order.indexOf(other.split('/')[0]!), `${module} imports ${other}`)
        .toBeLessThan(order.indexOf(module));
    }
    // A program that is started is not imported, and may be of any module.
    for (const other of starts) expect(order, module).toContain(other);
  }
});

test('no files of a module import each other in a circle, nor the types of each other', () => {
  expect(findCircles(readTree(['src'], ['.ts']))).toEqual([]);
});

test('no folders of a module import each other in a circle', () => {
  expect(findFolderCircles(readTree(['src'], ['.ts']), Object.values(PATHS))).toEqual([]);
});

test('a circle of two folders is found, and one of a folder and a file; those of another module are not in it', () => {
  const files = Object.entries({
    'src/mcp/call/a.ts': `import { b } from '../servers/b.ts';`,
    'src/mcp/servers/b.ts': `import { d } from './deep/d.ts';`,
    'src/mcp/servers/c.ts': `import type { A } from '../call/a.ts';`,
    'src/mcp/servers/deep/d.ts': `import { c } from '../c.ts';`,
    'src/mcp/http/e.ts': `import { a } from '../call/a.ts';`,
    'src/openai/f.ts': `import { g } from './batch-jobs/g.ts';`,
    'src/openai/batch-jobs/g.ts': `import { f } from '../f.ts';`,
  }).map(([path, text]) => ({ path, text }));
  const found = findFolderCircles(files, Object.values(PATHS));
  expect(found.map((circle) => circle.toSorted())).toEqual([['src/mcp/call', 'src/mcp/servers']]);
  const withB = files.map((file) =>
    file.path === 'src/mcp/servers/b.ts' ? { ...file, text: file.text.replace('./deep/d.ts', './c.ts') } : file,
  );
  const deep = withB.map((file) =>
    file.path === 'src/mcp/servers/c.ts' ? { ...file, text: `import { d } from './deep/d.ts';` } : file,
  );
  expect(findFolderCircles(deep, Object.values(PATHS)).map((circle) => circle.toSorted())).toEqual([
    ['src/mcp/servers/c.ts', 'src/mcp/servers/deep'],
  ]);
});

test('a circle of three files is found, also of types, and a file beside it is not in it', () => {
  const files = Object.entries({
    'src/billing/chains/a.ts': `import { b } from './b.ts';`,
    'src/billing/chains/b.ts': `import type { C } from './inner/c.ts';`,
    'src/billing/chains/inner/c.ts': `export { a } from '../a.ts';`,
    'src/billing/chains/beside.ts': `import { a } from './a.ts';`,
  }).map(([path, text]) => ({ path, text }));
  expect(findCircles(files).map((circle) => circle.toSorted())).toEqual([
    ['src/billing/chains/a.ts', 'src/billing/chains/b.ts', 'src/billing/chains/inner/c.ts'],
  ]);
  expect(findCircles(files.slice(1))).toEqual([]);
});

test('a public API names what it gives', () => {
  const apis = readTree(['src'], ['.ts']).filter(({ path }) => Object.values(imports).includes(`./${path}`));
  expect(apis.length).toBe(Object.keys(imports).length);
  for (const { path, text } of apis) expect.soft(text, path).not.toMatch(/^export \*/m);
});

/** More names than this are more than one module. */
const NAMES_MAX = 90;

test(`a public API gives at most ${NAMES_MAX} names`, () => {
  for (const { path, text } of readTree(['src'], ['.ts']).filter(({ path }) =>
    Object.values(imports).includes(`./${path}`),
  )) {
    const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
    const names = lists.flatMap(([, list]) => list!.split(',').filter((name) => name.trim() !== ''));
    expect.soft(names.length, path).toBeLessThanOrEqual(NAMES_MAX);
  }
});

describe('an import that breaks the table is found', () => {
  test.each([
    ['billing knows no gateway', 'src/billing/x.ts', `import { a } from '#call';`, 'billing may not know call'],
    [
      'billing knows no gateway by a path',
      'src/billing/chains/evm/x.ts',
      `import type { A } from '../../../gateway/call/call.ts';`,
      'chains may not know call',
    ],
    ['billing knows no fastify', 'src/billing/x.ts', `import fastify from 'fastify';`, 'billing may not use fastify'],
    [
      'modules are entered by their public API',
      'src/billing/x.ts',
      `import { a } from '../foundation/store/database.ts';`,
      `import its public API: '#store'`,
    ],
    [
      'gateway knows no protocol',
      'src/gateway/call/x.ts',
      `export * from '../../openai/chat.ts';`,
      'call may not know openai',
    ],
    [
      'gateway does not import its own public API',
      'src/gateway/call/x.ts',
      `import '#call';`,
      'import the file relatively',
    ],
    [
      'a protocol knows no ledger',
      'src/openai/x.ts',
      `import {\n  type A,\n  b,\n} from '#billing';`,
      'openai may not know billing',
    ],
    [
      'a proxy loads no network',
      'src/providers/proxy/x.ts',
      `import { createUpstream } from '#network';`,
      'proxy may not know network',
    ],
    [
      'imports run downward',
      'src/foundation/wire/x.ts',
      `import { a } from '../../server/config/names.ts';`,
      'wire may not know config',
    ],
    [
      'a narrower public API is one',
      'src/server/accounts/x.ts',
      `import { a } from '#accounts/names';`,
      'import the file relatively',
    ],
    [
      'the command line only starts the demo',
      'src/program/cli/x.ts',
      `import { a } from '../demo/provider.ts';`,
      'imports nothing of it',
    ],
    [
      'the composition uses public APIs',
      'src/program/app/app.ts',
      `import { createChat } from '../../openai/chat.ts';`,
      `import its public API: '#openai'`,
    ],
    [
      'a protocol knows no store',
      'src/openai/chat/x.ts',
      `const s = await import('#store');`,
      'openai may not know store',
    ],
    ['protocols do not know each other', 'src/mcp/x.ts', `import { a } from '../a2a/card.ts';`, 'mcp may not know a2a'],
    [
      'the store is the lowest module',
      'src/foundation/store/x.ts',
      `import type { A } from '#billing';`,
      'store may not know billing',
    ],
    [
      'the demo knows nothing of ours',
      'src/program/demo/x.ts',
      `import { a } from '../../gateway/call/errors.ts';`,
      'demo may not know call',
    ],
    [
      'no module imports the composition',
      'src/openai/x.ts',
      `import { createApp } from '../program/app/app.ts';`,
      'openai may not know app',
    ],
    [
      'a worker file counts',
      'src/billing/x.ts',
      `new Worker(new URL('../openai/w.ts', import.meta.url));`,
      'billing may not know openai',
    ],
    ['require counts', 'src/billing/x.ts', `const f = require("undici");`, 'billing may not use undici'],
    [
      'a new module is first put into the table',
      'src/extras/x.ts',
      `import 'node:fs';`,
      'not a module of the import table',
    ],
    [
      'src stands alone',
      'src/foundation/store/x.ts',
      `import '../../../test/support/postgres.ts';`,
      'leads out of src',
    ],
    ['an alias exists', 'src/openai/x.ts', `import { a } from '#medium';`, 'no such alias'],
    [
      'only the edges read the environment',
      'src/gateway/call/x.ts',
      `const home = process.env['HOME'];`,
      'take the value as an argument',
    ],
    [
      'only the edges read the environment by name',
      'src/gateway/call/x.ts',
      `import { env } from 'node:process';`,
      'take the value as an argument',
    ],
    [
      'only the edges read the command line',
      'src/program/app/app.ts',
      `const [, , verb] = process.argv;`,
      'take the value as an argument',
    ],
    [
      'chains stay in their module',
      'src/billing/deposit.ts',
      `import { getAddress } from 'viem';`,
      'billing may not use viem',
    ],
    [
      'pages use no chain',
      'src/console/pages/funds/x.ts',
      `import { x402Client } from '@x402/core/client';`,
      'pages may not use @x402/core',
    ],
    [
      'chains bring no other package',
      'src/billing/chains/x.ts',
      `import { request } from 'undici';`,
      'chains may not use undici',
    ],
    ['billing is mounted once', 'src/openai/x.ts', `const bill = createBill(options);`, 'mounted once'],
  ])('%s', (_name, path, text, says) => {
    const findings = check(path, text);
    expect(findings.join('\n')).toContain(says);
    expect(findings[0]).toMatch(/^src\/[\w/.-]+:1 |^src\/[\w/.-]+:4 /);
  });
});

describe('what the table allows is not found', () => {
  test.each([
    ['a public API', 'src/openai/x.ts', `import { a, type B } from '#call';\nimport fastify from 'fastify';`],
    ['own files', 'src/gateway/call/routing/x.ts', `import { a } from '../call.ts';`],
    [
      'node',
      'src/program/demo/main.ts',
      `import { createServer } from 'node:http';\nconst port = process.env['PORT'];`,
    ],
    [
      'composition',
      'src/program/app/app.ts',
      `import { createChat } from '#openai';\nimport { VERSION } from '../../foundation/version.ts';\nimport { openLedger } from '#billing';`,
    ],
    [
      'a program by its path',
      'src/program/cli/x.ts',
      `const program = new URL('../demo/provider.ts', import.meta.url);`,
    ],
    ['amounts', 'src/mcp/x.ts', `import type { MicroUsd } from '#billing/amounts';`],
    ['the one place of billing', 'src/gateway/call/billing.ts', `import { createBill } from '#billing';`],
    [
      'the packages of chains',
      'src/billing/chains/x.ts',
      `import { getAddress } from 'viem';\nimport { a } from '@x402/evm/exact/client';`,
    ],
    ['scoped packages', 'src/console/observe/x.ts', `import { trace } from '@opentelemetry/api';`],
    ['a comment', 'src/billing/x.ts', `// import { a } from '#call';\n/* process.env */ const x = 1;`],
    ['a string', 'src/billing/x.ts', `const text = "import { a } from '#call'"; const t = \`\${text} process.env\`;`],
    ['a regular expression', 'src/billing/x.ts', `const quote = /['"]/; const x = 4 / 2; // '`],
  ])('%s', (_name, path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});
