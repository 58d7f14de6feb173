import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ALONE, filesOfTier, isOneOf, MEASURED, type Tier } from './scripts/test-tiers.ts';

// Compiled code is kept between processes and threads, as bin/tollgate.mjs keeps it: each gateway of a test starts a thread that loads modules anew.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/tollgate', import.meta.url));

const deep = process.env['TOLLGATE_DEEP'] === '1';

const tier = (process.env['TOLLGATE_TESTS'] ?? (deep ? 'deep' : 'both')) as Tier;
const files = filesOfTier(tier, import.meta.dirname);

const LAST = { maxWorkers: 2, sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Room for the young: hundreds of gateways come and go in a worker, and what V8 has by default is collected often.
    // It saves about a quarter of the CPU.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64'],
    // A third of a test's time is waiting for a clock, a process or a disk: on two processors further workers use what
    // two leave idle. The large counts of the deep run leave nothing.
    maxWorkers: deep ? 2 : 4,
    // Long enough for a machine that does something else as well: what hangs fails late, what is slow does not.
    testTimeout: deep ? 3_600_000 : 300_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { shuffle: false, concurrent: false },
    // A rejected promise that nobody awaited is a bug in what is tested.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
    unstubEnvs: true,
    // Node loads the sources as it does in production. Vite's loader would turn each use of an import into a property that is looked up; nothing here needs its transforms or mocks.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: files.filter((file) => !isOneOf([...ALONE, ...MEASURED], file)),
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: files.filter((file) => isOneOf(ALONE, file)), ...LAST } },
      {
        extends: true,
        test: {
          name: 'measured',
          include: files.filter((file) => isOneOf(MEASURED, file)),
          isolate: false,
          ...LAST,
        },
      },
    ],
  },
});
