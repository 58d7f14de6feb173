// Which test files run when. `npm test` holds what every change must hold, in minutes: tests that need nothing but this
// process and the embedded database. `npm run test:full` holds the others. `npm run test:deep` runs all of them with
// large counts, and those that need what a machine may not have.
//
// A test file needs more than this process when it, or a file of test/ that it imports, starts a program, a browser or
// a chain, or asks for the run's PostgreSQL or Redis. A file that runs its tests on both databases (`ENGINES`) is in
// both tiers: `npm test` runs them on the embedded one, `npm run test:full` on PostgreSQL. One that only the full run
// has asks for `BOTH_ENGINES`, unless one of them is enough by day.
import { readdirSync, readFileSync } from 'node:fs';
import path, { dirname, join, relative, resolve, sep } from 'node:path';

/**
 * The tiers, as values of the environment variable TOLLGATE_TESTS. `both` is what `npx vitest run <file>` takes: every
 * file but those of the deep run.
 */
const TIERS = ['everyday', 'full', 'deep', 'both'] as const;
export type Tier = (typeof TIERS)[number];

/** Files that start programs, and whose question is one that every change must answer. */
const EVERYDAY_TOO = ['test/docs/pages-run-as-written.test.ts'];

/** Files that need nothing else, but take long. What they ask with large counts and waits, faster files ask as well. */
const FULL_TOO = [
  // They start a process for each package.
  'test/providers/ai-sdk/{audio,endings,every-provider,failures-and-fidelity,packages-are-confined,behind-a-proxy,reach}.test.ts',
  'test/a2a/calls/{agents-that-break,large-files,large-results-repeated,tasks-that-outlast-their-call}.test.ts',
  'test/billing/ledger-model.test.ts',
  'test/fairness/**/*.test.ts',
  'test/gateway/network/registry/{document-fuzz,grace,prices-that-jump}.test.ts',
  'test/gateway/webhooks/{queues-are-bounded,slow-receivers-hold-up-nobody}.test.ts',
  'test/openai/embeddings/two-thousand-inputs.test.ts',
  'test/mcp/attacks/hostile-servers.test.ts',
  'test/mcp/calls/large-outcomes-repeated.test.ts',
  'test/mcp/sessions/abandoned.test.ts',
  'test/providers/proxy/stdio-{modern-tool,real-servers,sessions*,tool-misbehaves,tool-stops}.test.ts',
  'test/gateway/files/blobs-in-s3.test.ts',
  'test/media/{files-of-others-come-slowly,large-images-through-other-routes}.test.ts',
  'test/media/{large-replies-repeated,video-limits,video-queue}.test.ts',
  // It waits until a line of a batch is asked for again.
  'test/spine/endings/batch-lines.test.ts',
  'test/spine/{abandoned-reasoning,answers-before-the-body,cut-replies,slow-senders,stalled-readers}.test.ts',
  'test/gateway/network/through-tunnels/prices-that-jump.test.ts',
];

/**
 * Crowds and long hauls, whose everyday questions other files ask as well: for `npm run test:deep`. Only there is it
 * asked whether JSON-RPC entries and A2A tasks leave timers, sockets or memory behind (`nothing-is-left`); by day
 * `test/mcp/faults/connections-are-cut` asks it of tools.
 */
const DEEP_ONLY = [
  'test/a2a/contract/across-versions.test.ts',
  'test/a2a/faults/{gateways-are-killed,nothing-is-left}.test.ts',
  'test/billing/chains/{evm-payout-far-back,transactions-that-vanish}.test.ts',
  'test/billing/ledger-races-without-guards.test.ts',
  'test/program/cli/log-reader-gone.test.ts',
  // recheck takes one to four minutes for all of them.
  'test/architecture/regular-expressions.test.ts',
  // V8 counts each function, which makes every call slow.
  'test/program/app/nothing-of-app-runs-in-a-call.test.ts',
  'test/clients/generated/generated-clients.test.ts',
  'test/clients/schemathesis/schemathesis.test.ts',
  'test/cluster/{gateway-freezes,patroni-fails-over}.test.ts',
  'test/deploy/{chart,dashboard,rolling-restart}.test.ts',
  'test/examples/paid-call.test.ts',
  'test/fairness/{bodies-in-a-gigabyte,connections,kept-replies,large-replies,subscriptions,tunnel-floods,unread-replies,videos,worst-json-media,worst-json-stdio,worst-json-tunnels}.test.ts',
  'test/console/pages/reference/document-is-linted.test.ts',
  'test/gateway/auth/people/{crowd-at-three-gateways,people-of-keycloak}.test.ts',
  'test/gateway/network/registry/flapping.test.ts',
  'test/ambiguous-keys/servers-in-go.test.ts',
  'test/gateway/authorization/{connected-from-the-page-in-a-browser,crowd-at-three-gateways,programs-sign-in}.test.ts',
  'test/mcp/clients/{coding-agents,frameworks,inspector}.test.ts',
  'test/mcp/conformance/client-through-the-gateway.test.ts',
  'test/mcp/conformance/fixture-itself.test.ts',
  'test/mcp/faults/soak.test.ts',
  'test/media/videos-outlive-a-kill.test.ts',
  'test/openai/clients/*.test.ts',
  'test/spine/chains/killed-with-money-under-way.test.ts',
  'test/release/{package-installs,tagged-build}.test.ts',
  'test/console/rpc/nothing-is-left.test.ts',
  'test/spine/soak.test.ts',
  'test/foundation/store/{a-backup-of-many-files,behind-a-pooler,upgrade-with-calls-under-way}.test.ts',
  'test/support-tests/{gateway-process,no-orphans}.test.ts',
  'test/console/pages/guide-in-a-browser.test.ts',
  'test/gateway/network/through-tunnels/five-hundred-streams.test.ts',
  'test/gateway/network/through-tunnels/two-hundred-proxies.test.ts',
];

/**
 * Files with a worker of their own. They measure or change what belongs to a whole process: memory, handles, its clock.
 * All others leave nothing behind that the next file could notice, so a worker runs them one after the other without
 * loading the gateway anew for each.
 */
export const ALONE = [
  'test/bench/**/*.test.ts',
  'test/{a2a/faults,console/rpc}/nothing-is-left.test.ts',
  'test/mcp/faults/{connections-are-cut,soak}.test.ts',
  'test/spine/{slow-readers,soak}.test.ts',
];

/**
 * Files that compare how long calls take with and without a crowd beside them. They run after the others, with a
 * processor for each.
 */
export const MEASURED = ['test/fairness/**/*.test.ts'];

/**
 * They start packages of the AI SDK. Node 24, which a checkout brings where Node 26 does not start, cannot confine
 * them, and so tollgate refuses them there: `test/providers/ai-sdk/refused-on-old-node` asks for that.
 */
const NEEDS_NODE_25 = [
  'test/providers/ai-sdk/{audio,behind-a-proxy,endings,every-provider,failures-and-fidelity,files-of-packages,packages-are-confined}.test.ts',
  'test/providers/ai-sdk/{films-of-every-provider,films-outlive-a-kill,sound-of-every-provider}.test.ts',
  'test/providers/ai-sdk/{a-package-floods-its-pipes,a-wall-is-required,flags-of-node,left-open-files,reach,restarts-renew-no-log,second-wall}.test.ts',
  'test/release/{provider-package,sources-of-a-package}.test.ts',
];
/** Whether a Node with these flags can confine them. */
export const confinesPackages = (flags: ReadonlySet<string> = process.allowedNodeEnvironmentFlags): boolean =>
  flags.has('--allow-net');

/** The test files of a tier, relative to `checkout`, that a Node with `flags` can run. */
export function filesOfTier(tier: Tier, checkout: string, flags?: ReadonlySet<string>): string[] {
  if (!TIERS.includes(tier)) throw new Error(`TOLLGATE_TESTS is one of ${TIERS.join(', ')}, and not ${tier}`);
  const all = readTests(checkout).filter(({ file }) => confinesPackages(flags) || !isOneOf(NEEDS_NODE_25, file));
  if (tier === 'deep') return all.map(({ file }) => file);
  const tests = all.filter(({ file }) => !isOneOf(DEEP_ONLY, file));
  if (tier === 'both') return tests.map(({ file }) => file);
  const wanted = tests.filter(({ file, needsMore, onBoth }) => {
    const isEveryday = isOneOf(EVERYDAY_TOO, file) || (!needsMore && !isOneOf(FULL_TOO, file));
    return tier === 'everyday' ? isEveryday : !isEveryday || onBoth;
  });
  return wanted.map(({ file }) => file);
}

/** The globs of the lists above, without braces, that stand for no file of `checkout`: a file was moved or renamed. */
export function globsOfNoFile(checkout: string): string[] {
  const files = readTests(checkout).map(({ file }) => file);
  return [...EVERYDAY_TOO, ...FULL_TOO, ...DEEP_ONLY, ...NEEDS_NODE_25, ...ALONE, ...MEASURED]
    .flatMap(withoutBraces)
    .filter((glob) => !files.some((file) => path.matchesGlob(file, glob)));
}

/** `a/{b,c}.ts` as `a/b.ts` and `a/c.ts`. */
function withoutBraces(glob: string): string[] {
  const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(glob) ?? [];
  return names === undefined ? [glob] : names.split(',').map((name) => `${before}${name}${after}`);
}

/** Whether one of the globs stands for the file. */
export function isOneOf(globs: readonly string[], file: string): boolean {
  return globs.some((glob) => path.matchesGlob(file, glob));
}

interface TestFile {
  /** Relative to the checkout, with slashes. */
  readonly file: string;
  /** Whether it needs more than this process and the embedded database. */
  readonly needsMore: boolean;
  /** Whether it runs its tests on both databases. */
  readonly onBoth: boolean;
}

interface Source extends Omit<TestFile, 'file'> {
  readonly imports: readonly string[];
}

function readTests(checkout: string): TestFile[] {
  const sources = new Map<string, Source>();
  for (const name of readdirSync(join(checkout, 'test'), { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.ts')) sources.set(join(checkout, 'test', name), readSource(join(checkout, 'test', name)));
  return [...sources]
    .filter(([file]) => file.endsWith('.test.ts'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, { onBoth }]) => ({
      file: relative(checkout, file).split(sep).join('/'),
      needsMore: reached(file, sources).some((source) => source.needsMore),
      onBoth,
    }));
}

function readSource(file: string): Source {
  const text = readFileSync(file, 'utf8');
  return {
    imports: [...text.matchAll(/^(?:import|export) (?!type )[^;]*? from '(\.[^']+)'/gm)].map((match) =>
      resolve(dirname(file), match[1]!),
    ),
    needsMore: startsSomething(text),
    onBoth: /\bENGINES\b/.test(text),
  };
}

/** Whether the file's own text starts a program, a browser or a chain, or asks for PostgreSQL or Redis. */
function startsSomething(text: string): boolean {
  const asksForServer = /inject\('(?:postgresUrl|redisUrl)'\)/.test(text) && !/\bENGINES\b|engine ===/.test(text);
  return (
    /^import (?!type )[^;]* from '(?:node:child_process|playwright-core|litesvm)'|open\w+\('postgres'\)/m.test(text) ||
    asksForServer
  );
}

/** The file and what it imports of test/, directly or not. */
function reached(file: string, sources: ReadonlyMap<string, Source>, seen = new Map<string, Source>()): Source[] {
  const source = sources.get(file);
  if (source === undefined || seen.has(file)) return [];
  seen.set(file, source);
  for (const next of source.imports) reached(next, sources, seen);
  return [...seen.values()];
}
