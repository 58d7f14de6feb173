import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../architecture/source.ts';

const FOLDER = join(ROOT, '.github/workflows');

interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<Record<string, { readonly 'timeout-minutes'?: number; readonly steps: readonly Step[] }>>;
}
interface Step {
  readonly run?: string;
}

describe.each(readdirSync(FOLDER))('the workflow %s', (name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  const workflow = parse(text) as Workflow;

  // A tag can be moved to other code; a hash cannot.
  test('pins actions by hash, and says their versions', () => {
    const uses = [...text.matchAll(/uses: (.+)/g)].map((match) => match[1]);
    expect(uses.length).toBeGreaterThan(0);
    for (const use of uses) expect(use).toMatch(/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('has few rights, and ends', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeLessThanOrEqual(90);
  });

  test('runs commands that there are', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const commands = Object.values(workflow.jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    for (const command of commands)
      for (const [, script] of command.matchAll(/\bnpm run ([\w:]+)/g)) expect(scripts).toHaveProperty(script!);
  });
});
