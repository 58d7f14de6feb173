import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../../support/spine.ts';
import { installStranger } from '../../../support/stranger.ts';

// Two linters that others wrote find nothing in /openapi.json. Both are too large for everybody's `npm test`.

let spine: Spine;
let folder: string;
let document: string;
beforeAll(async () => {
  spine = await startSpine();
  folder = mkdtempSync(join(tmpdir(), 'tollgate-lint-'));
  document = join(folder, 'openapi.json');
  writeFileSync(document, await (await fetch(`${spine.origin}/openapi.json`)).text());
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await spine.stop();
});

/** What the linter writes. Throws that if it ends with another code than 0. */
function lint(script: string, args: readonly string[]): string {
  const env = { PATH: process.env['PATH'], HOME: folder, REDOCLY_TELEMETRY: 'off' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'lint', ...args, document], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stdout + stderr);
  return stdout + stderr;
}

test('redocly, with its recommended rules', () => {
  const script = join(installStranger('redocly'), 'node_modules/@redocly/cli/bin/cli.js');
  const said = lint(script, ['--extends', 'recommended']);
  expect(said).toContain('Your API description is valid');
  expect(said).not.toMatch(/warning/i);
});

test('spectral, with its rules for OpenAPI', () => {
  const script = join(installStranger('spectral'), 'node_modules/@stoplight/spectral-cli/dist/index.js');
  const rules = join(folder, 'rules.json');
  // A gateway does not know whom its operator wants to be asked.
  writeFileSync(rules, JSON.stringify({ extends: ['spectral:oas'], rules: { 'info-contact': 'off' } }));
  expect(lint(script, ['--ruleset', rules, '--fail-severity', 'hint'])).toContain('No results');
});
