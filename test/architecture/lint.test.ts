import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { MODULES } from './import-rules.ts';
import { withLintPatterns } from './lint-rules.ts';
import { ROOT } from './source.ts';

const OXLINT = join(ROOT, 'node_modules/oxlint/bin/oxlint');
const folder = mkdtempSync(join(tmpdir(), 'tollgate-lint-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One file per line: path, text, and the rule that must refuse it. */
const BROKEN = [
  ['src/billing/a.ts', `export * from '#call';`, 'no-restricted-imports'],
  ['src/billing/b.ts', `export * from '../openai/chat.ts';`, 'no-restricted-imports'],
  ['src/billing/chains/evm/c.ts', `export * from '../../gateway/call.ts';`, 'no-restricted-imports'],
  ['src/billing/d.ts', `export { default } from 'fastify';`, 'no-restricted-imports'],
  ['src/billing/e.ts', `export { getAddress } from 'viem';`, 'no-restricted-imports'],
  ['src/billing/f.ts', `export * from '@x402/core/types';`, 'no-restricted-imports'],
  ['src/billing/chains/g.ts', `export { request } from 'undici';`, 'no-restricted-imports'],
  ['src/foundation/store/a.ts', `export * from '#billing';`, 'no-restricted-imports'],
  ['src/gateway/call/a.ts', `export * from '../mcp/x.ts';`, 'no-restricted-imports'],
  ['src/gateway/call/b.ts', `export * from '../store/database.ts';`, 'no-restricted-imports'],
  ['src/gateway/call/c.ts', `export * from '../app/app.ts';`, 'no-restricted-imports'],
  ['src/gateway/call/d.ts', `export const port = process.env['PORT'];`, 'no-process-env'],
  ['src/gateway/call/e.ts', `export const verb = process.argv[2];`, 'no-restricted-properties'],
  ['src/openai/a.ts', `export * from '#billing';`, 'no-restricted-imports'],
  ['src/openai/b.ts', `export * from '#store';`, 'no-restricted-imports'],
  ['src/openai/chat/c.ts', `export * from '../../gateway/call.ts';`, 'no-restricted-imports'],
  ['src/mcp/a.ts', `export * from '../openai/chat.ts';`, 'no-restricted-imports'],
  ['src/providers/proxy/a.ts', `export * from '#store';`, 'no-restricted-imports'],
  ['src/providers/proxy/b.ts', `export * from '#network';`, 'no-restricted-imports'],
  ['src/foundation/wire/a.ts', `export * from '#config';`, 'no-restricted-imports'],
  ['src/gateway/auth/a.ts', `export * from '#pages';`, 'no-restricted-imports'],
  ['src/program/app/a.ts', `export * from '../openai/chat.ts';`, 'no-restricted-imports'],
  ['src/program/app/b.ts', `export * from '#cli';`, 'no-restricted-imports'],
  ['src/program/cli/a.ts', `export * from '../app/app.ts';`, 'no-restricted-imports'],
  ['src/program/demo/a.ts', `export * from '../gateway/errors.ts';`, 'no-restricted-imports'],
  ['src/openai/d.ts', `export const parse = (text: string): any => JSON.parse(text);`, 'no-explicit-any'],
  ['src/openai/e.ts', `export const parse = (text: string): string => JSON.parse(text).name;`, 'no-unsafe-return'],
  ['src/openai/f.ts', `export const start = (run: () => Promise<void>): void => { run(); };`, 'no-floating-promises'],
  ['src/openai/g.ts', `export const start = (run: () => Promise<boolean>) => (run() ? 1 : 2);`, 'no-misused-promises'],
  [
    'src/openai/h.ts',
    `export function f(x: 'a' | 'b'): void { switch (x) { case 'a': break; } }`,
    'switch-exhaustiveness-check',
  ],
  ['src/openai/twice-named_File.ts', `export const x = 1;`, 'filename-case'],
  ['test/a.test.ts', `import { test } from 'vitest';\ntest.only('x', () => {});`, 'no-focused-tests'],
] as const;

/** What composition and the protocols may do. */
const SOUND = [
  ['src/program/app/app.ts', `export * from '#openai';\nexport * from '#billing';`],
  ['src/main.ts', `export const verb = process.argv[2];\nexport const port = process.env['PORT'];`],
  ['src/openai/chat.ts', `export const x = 1;`],
  [
    'src/openai/sound.ts',
    `export * from '#call';\nexport * from '#billing/amounts';\nexport { default } from 'fastify';`,
  ],
  ['src/gateway/call/sound.ts', `export * from '#billing';\nexport * from '#store';\nexport * from './call.ts';`],
  ['src/billing/sound.ts', `export * from '#store';\nexport * from './money.ts';`],
] as const;

test('the linter refuses what each of its rules is for, and nothing else', () => {
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json'])
    copyFileSync(join(ROOT, name), join(folder, name));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const [path, text] of [...BROKEN, ...SOUND]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${text}\n`);
  }
  const found = new Map<string, string[]>();
  for (const { filename, code } of lint().diagnostics) found.set(filename, [...(found.get(filename) ?? []), code]);
  for (const [path, , rule] of BROKEN) expect(found.get(path)?.join(' '), path).toContain(rule);
  for (const [path] of SOUND) expect(found.get(path), path).toBeUndefined();
});

function lint(): { diagnostics: { filename: string; code: string }[] } {
  const options = { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
  try {
    execFileSync(process.execPath, [OXLINT, '--type-aware', '--format=json', 'src', 'test'], options);
    throw new Error('the linter found nothing');
  } catch (error) {
    const { stdout } = error as { stdout?: string };
    if (!stdout) throw error;
    return JSON.parse(stdout) as { diagnostics: { filename: string; code: string }[] };
  }
}

test('the linter has the import table, which `npm run docs` writes', () => {
  const { imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { imports: object };
  const config = readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8');
  expect(withLintPatterns(config, Object.keys(imports))).toBe(config);
  for (const module of Object.keys(MODULES).filter((name) => !['main', 'version', 'errors'].includes(name)))
    expect(config).toContain(`"src/${module}/**"`);
});
