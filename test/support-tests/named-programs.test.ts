import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { findProgram } from '../support/find-program.ts';

const starts = (name: string, ...args: readonly string[]): boolean => spawnSync(name, args).error === undefined;

test('a test finds by name what the README names, and nothing else', () => {
  for (const name of ['git', 'node', 'npm', 'sh']) expect([name, starts(name, '--version')]).toEqual([name, true]);
  // The deep run has the machine's own PATH: it starts programs of other languages.
  if (process.env['TOLLGATE_DEEP'] === '1') return;
  // This machine may have them; another one does not.
  for (const name of ['python3', 'ps', 'curl', 'jq', 'go', 'docker', 'nginx', 'redis-server'])
    expect([name, starts(name, '--version')]).toEqual([name, false]);
});

test('a program that operators run beside the gateway is found, or brought', () => {
  const { file, env } = findProgram('nginx');
  expect(spawnSync(file, ['-v'], { env }).status).toBe(0);
});
