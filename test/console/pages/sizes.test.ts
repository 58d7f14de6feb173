import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { findBuilt, ROOT } from '../../../src/console/pages/web/page-files.ts';

// What a visitor loads, packed by gzip, in KiB.

const MOST = { firstLoad: 98.8, route: 20, chart: 25, css: 12, document: 6 } as const;

let files: { readonly name: string; readonly text: string; readonly kib: number }[];
beforeAll(async () => {
  const built = await findBuilt({ root: ROOT, signal: new AbortController().signal });
  if (!('folder' in built)) throw new Error(built.reason);
  const { folder } = built;
  const names = (await readdir(folder, { recursive: true })).filter((name) => /\.(?:js|css|html)$/.test(name));
  files = await Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(join(folder, name));
      return { name, text: bytes.toString(), kib: gzipSync(bytes).byteLength / 1024 };
    }),
  );
});

const only = (pattern: RegExp) => files.filter(({ name }) => pattern.test(name));
const sum = (some: readonly { readonly kib: number }[]) => some.reduce((total, { kib }) => total + kib, 0);

test('scripts before the first page', () => {
  const document = only(/index\.html$/)[0]!;
  const first = files.filter(({ name }) => name.endsWith('.js') && document.text.includes(name.replaceAll('\\', '/')));
  console.log(`first load ${sum(first).toFixed(1)} KiB, document ${document.kib.toFixed(1)} KiB`);
  expect(sum(first)).toBeLessThanOrEqual(MOST.firstLoad);
  expect(document.kib).toBeLessThanOrEqual(MOST.document);
});

test('each page, each part that is loaded later, and the charts', () => {
  const document = only(/index\.html$/)[0]!;
  const later = files.filter(({ name }) => name.endsWith('.js') && !document.text.includes(name.replaceAll('\\', '/')));
  for (const { name, kib } of later)
    expect(kib, name).toBeLessThanOrEqual(name.includes('chart-canvas') ? MOST.chart : MOST.route);
  console.log(later.map(({ name, kib }) => `${name} ${kib.toFixed(1)}`).join(', '));
});

test('styles', () => {
  const styles = only(/\.css$/);
  console.log(`styles ${sum(styles).toFixed(1)} KiB`);
  expect(sum(styles)).toBeLessThanOrEqual(MOST.css);
});
