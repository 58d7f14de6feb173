import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTree, ROOT } from './source.ts';

/**
 * Nobody of this project has published a package of this name: whoever runs one of these runs what a stranger
 * published, perhaps beside a wallet.
 */
const FETCHES =
  /\bnpx\s+(?!--no\b)(?:-\S+\s+)*tollgate\b|\bnpm\s+(?:exec|x|install|i|add)\b[^\n`;&|]*[ \t]tollgate\b|\b(?:pnpm|yarn)\s+(?:dlx|add)\s+tollgate\b|\bbunx\s+tollgate\b/g;

const files = [
  ...readTree(['src', 'bench', 'scripts', 'bin', 'examples'], ['.ts', '.mts', '.mjs', '.js']),
  ...readTree(['docs', 'examples'], ['.md', '.toml']),
  ...readdirSync(ROOT)
    .filter((name) => /\.(?:md|toml)$/.test(name))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') })),
];

test('no page, hint or source tells anybody to fetch a package named tollgate', () => {
  expect(files.flatMap(({ path, text }) => [...text.matchAll(FETCHES)].map(([found]) => `${path}: ${found}`))).toEqual(
    [],
  );
});

test('each guide that people without a checkout read says where the command comes from', () => {
  for (const path of [
    'docs/use/sign-in.md',
    'docs/use/withdraw.md',
    'docs/sell/provide.md',
    'src/console/pages/front/front-document.ts',
    'src/console/pages/reference/reference-routes.ts',
  ])
    expect.soft(files.find((file) => file.path === path)?.text, path).toMatch(/not on npm/);
});

test('the pattern finds the dangerous forms, and lets the safe ones be', () => {
  for (const form of [
    'npx tollgate audit',
    'npx -y tollgate siwx',
    'npm exec tollgate',
    'npm i -g tollgate',
    'bunx tollgate',
  ])
    expect.soft(form.match(FETCHES), form).not.toBeNull();
  for (const form of [
    'node bin/tollgate.mjs audit',
    'npx --no tollgate',
    'cd tollgate && npm ci',
    'npm ci   # then tollgate',
  ])
    expect.soft(form.match(FETCHES), form).toBeNull();
});
