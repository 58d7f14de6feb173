import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Compiled code is kept between processes and threads, as bin/tollgate.mjs keeps it: each gateway of a test starts a thread that loads modules anew.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/tollgate', import.meta.url));

const deep = process.env['TOLLGATE_DEEP'] === '1';

/**
 * Files with a worker of their own. They measure or change what belongs to a whole process (memory, handles, its clock).
 * All others leave nothing behind that the next file could notice, so a worker runs them one after the other without loading the gateway anew for each.
 */
const ALONE = [
  'test/bench/**/*.test.ts',
  'test/{a2a/faults,rpc}/nothing-is-left.test.ts',
  'test/mcp/faults/{connections-are-cut,soak}.test.ts',
  'test/spine/{slow-readers,soak}.test.ts',
];

/** Files that compare how long calls take with and without a crowd beside them. They run after the others, with a processor for each. */
const MEASURED = ['test/fairness/**/*.test.ts'];

/**
 * Crowds and long hauls, whose everyday questions other files ask as well: for `npm run test:deep`. Only there is it
 * asked whether JSON-RPC entries and A2A tasks leave timers, sockets or memory behind (`nothing-is-left`); by day
 * `test/mcp/faults/connections-are-cut` asks it of tools.
 */
const DEEP_ONLY = [
  'test/a2a/contract/across-versions.test.ts',
  'test/a2a/faults/{gateways-are-killed,nothing-is-left}.test.ts',
  'test/billing/chain/{evm-payout-far-back,transactions-that-vanish}.test.ts',
  'test/billing/ledger-races-without-guards.test.ts',
  'test/cli/log-reader-gone.test.ts',
  'test/cluster/gateway-freezes.test.ts',
  'test/deploy/{chart,dashboard,rolling-restart}.test.ts',
  'test/examples/paid-call.test.ts',
  'test/fairness/{bodies-in-a-gigabyte,connections,kept-replies,large-replies,subscriptions,tunnel-floods,unread-replies,videos}.test.ts',
  'test/gateway/reference/docs-in-a-browser.test.ts',
  'test/gateway/registry/flapping.test.ts',
  'test/look-alikes/servers-in-go.test.ts',
  'test/mcp/clients/{coding-agents,frameworks,inspector}.test.ts',
  'test/mcp/conformance/client-through-the-gateway.test.ts',
  'test/mcp/conformance/fixture-itself.test.ts',
  'test/mcp/faults/soak.test.ts',
  'test/media/videos-outlive-a-kill.test.ts',
  'test/openai/clients/*.test.ts',
  'test/spine/chains/killed-with-money-under-way.test.ts',
  'test/release/{package-installs,sources-of-a-package}.test.ts',
  'test/rpc/nothing-is-left.test.ts',
  'test/spine/soak.test.ts',
  'test/store/{a-backup-of-many-files,upgrade-with-calls-under-way}.test.ts',
  'test/support-tests/{gateway-process,no-orphans}.test.ts',
  'test/web/guide-in-a-browser.test.ts',
  'test/tunnel/five-hundred-streams.test.ts',
  'test/tunnel/two-hundred-proxies.test.ts',
];
const exclude = ['**/node_modules/**', ...(deep ? [] : DEEP_ONLY)];

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
    testTimeout: deep ? 3_600_000 : 120_000,
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
          include: ['test/**/*.test.ts'],
          exclude: [...exclude, ...ALONE, ...MEASURED],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, exclude, ...LAST } },
      { extends: true, test: { name: 'measured', include: MEASURED, exclude, isolate: false, ...LAST } },
    ],
  },
});
