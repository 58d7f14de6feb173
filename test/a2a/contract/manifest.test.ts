import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKS } from './checks/index.ts';
import { REQUIREMENTS } from './manifest.ts';

test('each requirement has its check, and each check its requirement', () => {
  const wanted = REQUIREMENTS.map(({ file, id }) => `${file}: ${id}`);
  const there = Object.entries(CHECKS).flatMap(([file, checks]) => Object.keys(checks).map((id) => `${file}: ${id}`));
  expect(there.toSorted()).toEqual(wanted.toSorted());
});

test('no requirement is there twice', () => {
  const ids = REQUIREMENTS.map(({ id }) => id);
  expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
});

test('each requirement cites a section of a version', () => {
  for (const { id, section } of REQUIREMENTS) {
    expect(Object.keys(section), id).not.toEqual([]);
    for (const cited of Object.values(section)) expect(cited, id).toMatch(/^(?:\d+|A)(?:\.\d+)*$/u);
  }
});

test('each file of checks is in use', () => {
  const files = readdirSync(join(import.meta.dirname, 'checks'))
    .filter((name) => name !== 'index.ts')
    .map((name) => name.replace(/\.ts$/u, ''));
  expect(files.toSorted()).toEqual(Object.keys(CHECKS).toSorted());
});

test('each check asserts something', () => {
  for (const file of Object.keys(CHECKS)) {
    const text = readFileSync(join(import.meta.dirname, 'checks', `${file}.ts`), 'utf8');
    for (const check of text.split(/^ {2}'/mu).slice(1)) {
      expect(/expect|receives\(|reaches\(/u.test(check), `${file}: ${check.slice(0, 40)}`).toBe(true);
    }
  }
});
