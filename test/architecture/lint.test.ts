import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ROOT } from './source.ts';

const OXLINT = join(ROOT, 'node_modules/oxlint/bin/oxlint');
const folder = mkdtempSync(join(tmpdir(), 'tollgate-lint-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One file per line: path, text, and the rule that must refuse it. */
const BROKEN = [
  ['src/gateway/call/d.ts', `export const port = process.env['PORT'];`, 'no-process-env'],
  ['src/gateway/call/e.ts', `export const verb = process.argv[2];`, 'no-restricted-properties'],
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

/** What the linter leaves to the others. */
const SOUND = [
  [
    'src/main.ts',
    `export const verb = process.argv[2];
export const port = process.env['PORT'];`,
  ],
  ['src/openai/chat.ts', `export const x = 1;`],
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
