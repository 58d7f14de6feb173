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
  'test/a2a/faults/nothing-is-left.test.ts',
  'test/mcp/faults/{connections-are-cut,soak}.test.ts',
  'test/spine/{kill-nine,slow-readers,soak}.test.ts',
];

/** Crowds and long hauls, whose everyday questions other files ask as well: for `npm run test:deep`. */
const DEEP_ONLY = [
  'test/a2a/contract/across-versions.test.ts',
  'test/a2a/faults/gateways-are-killed.test.ts',
  'test/billing/chain/transactions-that-vanish.test.ts',
  'test/billing/ledger-races-without-guards.test.ts',
  'test/cluster/gateway-freezes.test.ts',
  'test/gateway/reference/docs-in-a-browser.test.ts',
  'test/gateway/registry/flapping.test.ts',
  'test/mcp/clients/{coding-agents,frameworks}.test.ts',
  'test/mcp/conformance/client-through-the-gateway.test.ts',
  'test/mcp/conformance/fixture-itself.test.ts',
  'test/mcp/faults/soak.test.ts',
  'test/openai/clients/*.test.ts',
  'test/spine/chains/killed-with-money-under-way.test.ts',
  'test/spine/soak.test.ts',
  'test/support-tests/no-orphans.test.ts',
  'test/tunnel/five-hundred-streams.test.ts',
  'test/tunnel/two-hundred-proxies.test.ts',
];
const exclude = ['**/node_modules/**', ...(deep ? [] : DEEP_ONLY)];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Tests load the machine with real servers and real sockets: more workers than this only make them wait for each other.
    maxWorkers: 2,
    // Long enough for a machine that does something else as well: what hangs fails late, what is slow does not.
    testTimeout: deep ? 3_600_000 : 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 10_000 } },
    sequence: { shuffle: false, concurrent: false },
    // A rejected promise that nobody awaited is a bug in what is tested.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
    unstubEnvs: true,
    // AiMo's SDK imports its own files without their endings, as bundlers take it and Node does not.
    server: { deps: { inline: [/\/@aimo\.network\//] } },
    projects: [
      { extends: true, test: { name: 'alone', include: ALONE, exclude } },
      {
        extends: true,
        test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: [...exclude, ...ALONE], isolate: false },
      },
    ],
  },
});
