import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { filesOfTier, globsOfNoFile } from '../../scripts/test-tiers.ts';
import { ROOT } from '../architecture/source.ts';

test('each test file belongs to the everyday run, to the full one or to the deep one', () => {
  const [everyday, full, both, deep] = (['everyday', 'full', 'both', 'deep'] as const).map(
    (tier) => new Set(filesOfTier(tier, ROOT)),
  ) as [Set<string>, Set<string>, Set<string>, Set<string>];
  expect(everyday.union(full)).toEqual(both);
  expect(both.isSubsetOf(deep)).toBe(true);
});

test('each name in the lists of tiers is that of a file', () => {
  expect(globsOfNoFile(ROOT)).toEqual([]);
});

test('what a file imports decides: a program, a browser, a server of the run', () => {
  const checkout = checkoutWith({
    'alone.test.ts': "import { expect } from 'vitest';\nimport type { Child } from './child.ts';\n",
    'with-a-process.test.ts': "import { expect } from 'vitest';\nimport {\n  start,\n} from './support/start.ts';\n",
    'support/start.ts': "export { spawnIt } from './child.ts';\n",
    'support/child.ts': "import { spawn } from 'node:child_process';\n",
    'with-a-server.test.ts': "const url = inject('redisUrl');\n",
    'on-both.test.ts': "describe.each(ENGINES)('%s', (engine) => open(inject('postgresUrl')));\n",
    'on-postgres.test.ts': "const database = await openTestDatabase('postgres');\n",
    'pages/page.test.ts': "import { chromium } from 'playwright-core';\n",
    'spine/soak.test.ts': "import { expect } from 'vitest';\n",
  });
  expect(filesOfTier('everyday', checkout)).toEqual(['test/alone.test.ts', 'test/on-both.test.ts']);
  expect(filesOfTier('full', checkout)).toEqual([
    'test/on-both.test.ts',
    'test/on-postgres.test.ts',
    'test/pages/page.test.ts',
    'test/with-a-process.test.ts',
    'test/with-a-server.test.ts',
  ]);
  expect(filesOfTier('deep', checkout)).toContain('test/spine/soak.test.ts');
  expect(() => filesOfTier('daily' as 'both', checkout)).toThrow('one of everyday, full, deep, both');
});

function checkoutWith(files: Readonly<Record<string, string>>): string {
  const checkout = mkdtempSync(join(tmpdir(), 'tiers-'));
  for (const [name, text] of Object.entries(files)) {
    const file = join(checkout, 'test', name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return checkout;
}
