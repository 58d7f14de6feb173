import { defineConfig } from 'vitest/config';

const deep = process.env['TOLLGATE_DEEP'] === '1';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Tests load the machine with real servers and real sockets: more workers than this only make them wait for each other.
    maxWorkers: 2,
    testTimeout: deep ? 3_600_000 : 30_000,
    hookTimeout: 60_000,
    sequence: { shuffle: false, concurrent: false },
    // A rejected promise that nobody awaited is a bug in what is tested.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
