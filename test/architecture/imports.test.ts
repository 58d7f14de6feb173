import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkImports, importsOf, ROOMS } from './import-rules.ts';
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

test('every alias leads to the public face of a room of the table', () => {
  // One room has a second, narrower face: `#gateway/wire`.
  for (const [alias, target] of Object.entries(imports)) expect(target).toBe(`./src/${alias.slice(1)}${alias.includes('/') ? '.ts' : '/index.ts'}`);
  for (const alias of aliases) expect(ROOMS).toHaveProperty(alias.slice(1).split('/')[0]!);
});

describe('an import that breaks the table is found', () => {
  test.each([
    ['billing knows no gateway', 'src/billing/x.ts', `import { a } from '#gateway';`, 'billing may not know gateway'],
    [
      'billing knows no gateway by a path',
      'src/billing/chain/x.ts',
      `import type { A } from '../../gateway/call.ts';`,
      'billing may not know gateway',
    ],
    ['billing knows no fastify', 'src/billing/x.ts', `import fastify from 'fastify';`, 'billing may not use fastify'],
    ['rooms are entered by their face', 'src/billing/x.ts', `import { a } from '../store/database.ts';`, `import its public face: '#store'`],
    ['gateway knows no protocol', 'src/gateway/x.ts', `export * from '../openai/chat.ts';`, 'gateway may not know openai'],
    ['gateway does not import its own face', 'src/gateway/x.ts', `import '#gateway';`, 'import the file relatively'],
    ['a protocol knows no billing', 'src/openai/x.ts', `import {\n  type A,\n  b,\n} from '#billing';`, 'openai may not know billing'],
    ['a protocol knows no store', 'src/openai/chat/x.ts', `const s = await import('#store');`, 'openai may not know store'],
    ['protocols do not know each other', 'src/mcp/x.ts', `import { a } from '../a2a/card.ts';`, 'mcp may not know a2a'],
    ['the store is the lowest room', 'src/store/x.ts', `import type { A } from '#billing';`, 'store may not know billing'],
    ['the demo knows nothing of ours', 'src/demo/x.ts', `import { a } from '../gateway/errors.ts';`, 'demo may not know gateway'],
    ['no room imports the composition', 'src/openai/x.ts', `import { createApp } from '../app.ts';`, 'openai may not know app'],
    ['a worker file counts', 'src/billing/x.ts', `new Worker(new URL('../openai/w.ts', import.meta.url));`, 'billing may not know openai'],
    ['require counts', 'src/billing/x.ts', `const f = require("undici");`, 'billing may not use undici'],
    ['a new room is first put into the table', 'src/extras/x.ts', `import 'node:fs';`, 'not a room of the import table'],
    ['src stands alone', 'src/store/x.ts', `import '../../test/support/postgres.ts';`, 'leads out of src'],
    ['an alias exists', 'src/openai/x.ts', `import { a } from '#media';`, 'no such alias'],
    ['only the edges read the environment', 'src/gateway/x.ts', `const home = process.env['HOME'];`, 'take the value as an argument'],
    ['only the edges read the environment by name', 'src/gateway/x.ts', `import { env } from 'node:process';`, 'take the value as an argument'],
    ['only the edges read the command line', 'src/app.ts', `const [, , verb] = process.argv;`, 'take the value as an argument'],
    ['chains stay in their folder', 'src/billing/deposit.ts', `import { getAddress } from 'viem';`, 'in src/billing/chain/ only'],
    ['chains stay in billing', 'src/gateway/funds/x.ts', `import { x402Client } from '@x402/core/client';`, 'gateway may not use @x402/core'],
    ['chains bring no other package', 'src/billing/chain/x.ts', `import { request } from 'undici';`, 'billing may not use undici'],
    ['billing is mounted once', 'src/openai/x.ts', `const bill = createBill(options);`, 'mounted once'],
  ])('%s', (_name, path, text, says) => {
    const findings = check(path, text);
    expect(findings.join('\n')).toContain(says);
    expect(findings[0]).toMatch(/^src\/[\w/.-]+:1 |^src\/[\w/.-]+:4 /);
  });
});

describe('what the table allows is not found', () => {
  test.each([
    ['a face', 'src/openai/x.ts', `import { a, type B } from '#gateway';\nimport fastify from 'fastify';`],
    ['own files', 'src/gateway/routing/x.ts', `import { a } from '../call.ts';`],
    ['node', 'src/demo/main.ts', `import { createServer } from 'node:http';\nconst port = process.env['PORT'];`],
    ['composition', 'src/app.ts', `import { createChat } from './openai/chat.ts';\nimport { openLedger } from '#billing';`],
    ['the one place of billing', 'src/app-billing.ts', `import { createBill } from '#billing';`],
    ['the packages of chains', 'src/billing/chain/x.ts', `import { getAddress } from 'viem';\nimport { a } from '@x402/evm/exact/client';`],
    ['scoped packages', 'src/gateway/observe/x.ts', `import { trace } from '@opentelemetry/api';`],
    ['a comment', 'src/billing/x.ts', `// import { a } from '#gateway';\n/* process.env */ const x = 1;`],
    ['a string', 'src/billing/x.ts', `const text = "import { a } from '#gateway'"; const t = \`\${text} process.env\`;`],
    ['a regular expression', 'src/billing/x.ts', `const quote = /['"]/; const x = 4 / 2; // '`],
  ])('%s', (_name, path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});
