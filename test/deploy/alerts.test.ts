import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { readTree } from '../architecture/source.ts';
import { findProgram } from '../support/find-program.ts';

const DEPLOY = resolve(import.meta.dirname, '../../deploy');
const promtool = (...args: string[]) => {
  const { file, env } = findProgram('promtool');
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: join(DEPLOY, 'prometheus'), env, encoding: 'utf8' });
  return { status, said: stdout + stderr };
};

it.each([
  ['rules', ['check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yml']],
  ['tests of the rules', ['test', 'rules', 'alerts.test.yml']],
  ['configuration', ['check', 'config', '--syntax-only', 'prometheus.yml']],
])('promtool takes the %s', (_, args) => {
  expect(promtool(...args)).toMatchObject({ status: 0 });
});

it('has each alert in the table of the guide', () => {
  const rules = readFileSync(join(DEPLOY, 'prometheus/alerts.yml'), 'utf8');
  const page = readFileSync(resolve(DEPLOY, '../docs/run/alerts.md'), 'utf8');
  const names = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

it('asks for metrics that a gateway has', () => {
  const known = readTree(['src/console/observe'], ['.ts'])
    .map(({ text }) => text)
    .join('\n');
  for (const file of ['prometheus/alerts.yml', 'grafana/tollgate.json']) {
    const named = readFileSync(join(DEPLOY, file), 'utf8').match(/\b(?:tollgate|gen_ai|mcp)_[a-z_]+\b/g) ?? [];
    expect(named.length).toBeGreaterThan(5);
    for (const name of new Set(named)) expect.soft(known, `${file} asks for ${name}`).toContain(base(name));
  }
});

it('draws panels that each have a title and a query', () => {
  const board = JSON.parse(readFileSync(join(DEPLOY, 'grafana/tollgate.json'), 'utf8')) as {
    panels: { title: string; type: string; targets?: { expr: string }[] }[];
  };
  for (const { title, type, targets } of board.panels) {
    expect(title).not.toBe('');
    if (type !== 'row') expect(targets?.length, title).toBeGreaterThan(0);
  }
});

/** A series of a histogram is named after it; a label is its own name. */
const base = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '');
