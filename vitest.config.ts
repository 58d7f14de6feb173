import { defineConfig } from 'vitest/config';

const deep = process.env['TOLLGATE_DEEP'] === '1';

/**
 * Files that a worker runs one after the other without loading the gateway anew for each: they leave nothing behind that the next could notice. The others
 * measure or change what belongs to a whole process (memory, handles, the environment), or are mostly processes of their own.
 */
const SHARED = [
  'test/{architecture,attacks-a2a,bridges,demo,gateway,openai,provide,rpc,store}/**/*.test.ts',
  'test/billing/chain/{evm,solana}-*.test.ts',
  'test/a2a/{calls,cards,clients,contract,push,wire}/**/*.test.ts',
  'test/mcp/{aggregate,attacks,calls,catalogue,clients,legacy-to-modern,modern-to-legacy,sessions}/**/*.test.ts',
  'test/peer-primitives.test.ts',
];

/** Crowds and long hauls, whose everyday questions other files ask as well: for `npm run test:deep`. */
const DEEP_ONLY = [
  'test/a2a/contract/across-versions.test.ts',
  'test/a2a/faults/gateways-are-killed.test.ts',
  'test/billing/chain/transactions-that-vanish.test.ts',
  'test/billing/ledger-races-without-guards.test.ts',
  'test/cluster/gateway-freezes.test.ts',
  'test/gateway/registry/flapping.test.ts',
  'test/mcp/conformance/client-through-the-gateway.test.ts',
  'test/mcp/faults/soak.test.ts',
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
    testTimeout: deep ? 3_600_000 : 30_000,
    hookTimeout: 60_000,
    sequence: { shuffle: false, concurrent: false },
    // A rejected promise that nobody awaited is a bug in what is tested.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      { extends: true, test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: [...exclude, ...SHARED] } },
      { extends: true, test: { name: 'shared', include: SHARED, exclude, isolate: false } },
    ],
  },
});
