import { rm } from 'node:fs/promises';
import { escrowOf, treasuryOf } from '#billing';
import type { AuditReport } from '#billing/compose';
import { parseUsd } from '#billing/amounts';
import { loadConfig } from '#config';
import type { OfferedBlock } from '#config/known-providers';
import type { Payments } from '#payments';
import { localAccount } from '#accounts/names';
import type { NewKeyFields } from '#auth/keys';
import type { Balance } from '../../src/billing/ledger/ledger.ts';
import { createApp, type App } from '../../src/program/app/app.ts';
import { anyProvider } from './any-provider.ts';
import { atThisLoad } from './at-this-load.ts';
import { fillDataDirectory, newDataDirectory } from './data-directory.ts';
import { NOTHING_LEFT_TO_LUCK } from './nothing-left-to-luck.ts';
import { pauses } from './pauses.ts';
import { createListedConfig } from '../../src/program/cli/gateway/listed-config.ts';
import { startProvider, type TestProvider } from './provider.ts';
import { DOMAIN } from './wallets.ts';

/**
 * A whole gateway in this process, on a real socket and a real database. It has one account with money, and one test
 * provider.
 */
export interface Spine {
  /** `http://127.0.0.1:<port>/api/v1`. */
  readonly url: string;
  readonly origin: string;
  readonly key: string;
  readonly account: string;
  readonly adminKey: string;
  readonly app: App;
  readonly provider: TestProvider;
  readonly logs: string[];
  /** Replaces the configuration file's text. A reload reads it. */
  writeFile(toml: string): void;
  balance(): Promise<Balance>;
  /** Resolves when no call holds a lock. */
  quiet(): Promise<void>;
  audit(): Promise<AuditReport>;
  /**
   * Waits until no lock is held, and returns the problems that the audit finds. Every test that moves money expects an
   * empty list.
   */
  faults(): Promise<readonly unknown[]>;
  /** Ids of all calls that ever held a lock, in any order. */
  locks(): Promise<readonly string[]>;
  /** Creates another account with this much USD and its own key. */
  tenant(
    name: string,
    usd: string,
    fields?: Partial<NewKeyFields>,
  ): Promise<{ readonly account: string; readonly key: string; readonly hash: string }>;
  generation(id: string | null, key?: string): Promise<Generation>;
  post(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

export interface SpineOptions {
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** The account's balance in USD. '0' means no money. */
  readonly credit?: string;
  /** Additional TOML: sections and `[[models]]`. `{provider}` is replaced by the test provider's address. */
  readonly toml?: string;
  readonly provider?: TestProvider;
  readonly mode?: 'development' | 'production';
  readonly now?: () => number;
  /** A monotonic clock in milliseconds. Default: `now`, if it is given. */
  readonly elapsed?: () => number;
  /** The clock of this machine, which the database's corrects. Default: `Date.now`. */
  readonly wall?: () => number;
  /** This and the next: default as in `NOTHING_LEFT_TO_LUCK`. */
  readonly random?: () => number;
  readonly keepAliveMs?: number;
  /** Accepts payments, instead of the chains in the configuration. */
  readonly payments?: Payments;
  /** Additional environment variables. undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The folder of the embedded database and the identity. It is kept when the gateway stops. */
  readonly dataDir?: string;
  readonly port?: number;
  /** The path of the configuration file, beside which packages of the AI SDK are found. Default `spine.toml`. */
  readonly file?: string;
}

/** An additional `[[models]]` block for `SpineOptions.toml`. Prices are USD per 1M tokens. */
export interface ModelBlock {
  readonly name?: string;
  /** Unique per name. */
  readonly provider: string;
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly prompt?: number;
  readonly completion?: number;
  readonly contextLength?: number;
  readonly maxOutputTokens?: number;
  /** Additional lines of the block itself. */
  readonly lines?: string;
  /** Additional lines of `[models.pricing]`. */
  readonly pricing?: string;
  /** Additional lines of `[models.params]`. */
  readonly params?: string;
}

export function modelBlock(block: ModelBlock): string {
  return `
[[models]]
name = "${block.name ?? MODEL}"
display_name = "${block.provider}: Model"
provider_name = "${block.provider}"
context_length = ${block.contextLength ?? 100_000}
max_output_tokens = ${block.maxOutputTokens ?? 4096}
${block.lines ?? ''}
[models.pricing]
prompt = ${block.prompt ?? 1}
completion = ${block.completion ?? 2}
${block.pricing ?? ''}
[models.params]
model = "upstream-of-${block.provider}"
api_base = "${block.url}"
api_key = "std::env::TEST_UPSTREAM_KEY"
${block.params ?? ''}
`;
}

/** Rate limits that are so high that no other test reaches them. */
export const UNHURRIED = '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n';

/** A chat request for the model that every spine serves. */
export const ask = (content: string, more: object = {}) => ({
  model: MODEL,
  messages: [{ role: 'user', content }],
  max_tokens: 50,
  ...more,
});

/** The record of a call, in the form of `/generation`. */
export interface Generation {
  readonly id: string;
  readonly state: string;
  readonly model: string;
  readonly provider: string | null;
  readonly provider_name: string | null;
  readonly cost_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly estimated: boolean;
  readonly cancelled: boolean;
  readonly flags: string[];
  readonly claims: readonly object[];
  readonly request_id: string;
  readonly session_id: string | null;
  readonly receipt: string | null;
  readonly entries: { readonly type: string; readonly amount_micro_usdc: number }[];
}

/** The model that every spine serves: 1 USD per 1M prompt tokens, 2 USD per 1M completion tokens. */
export const MODEL = 'test/model';

const LOCKS = { name: 'test/locks', text: 'SELECT id FROM locks' };
const HELD = { name: 'test/held-locks', text: "SELECT id FROM locks WHERE state = 'held' LIMIT 1" };

/** Gateways of one database share this seed. */
export const IDENTITY_SEED = '00'.repeat(31) + '01';
/** Longer than any call continues after its client has left. */
const QUIET_MS = 20_000;
const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';

export async function startSpine(options: SpineOptions = {}): Promise<Spine> {
  const dataDir = options.dataDir ?? newDataDirectory();
  if (options.databaseUrl === undefined) fillDataDirectory(dataDir);
  const provider = options.provider ?? (await startProvider());
  let more = options.toml ?? '';
  const toml = () => `
[[models]]
name = "${MODEL}"
display_name = "Test: Model"
provider_name = "Test"
context_length = 100000
max_output_tokens = 4096
input_modalities = ["text", "image"]
[models.pricing]
prompt = 1
completion = 2
image = 0.001
[models.params]
model = "upstream-model"
api_base = "${provider.url}"
api_key = "std::env::TEST_UPSTREAM_KEY"
${more.replaceAll('{provider}', provider.url)}`;
  const load = (text: string, offered: readonly OfferedBlock[] = []) =>
    loadConfig({
      file: options.file ?? 'spine.toml',
      text,
      offered,
      env: {
        TEST_UPSTREAM_KEY: 'upstream-secret-canary',
        TOLLGATE_ADMIN_KEY: ADMIN_KEY,
        DATABASE_URL: options.databaseUrl,
        REDIS_URL: options.redisUrl,
        TOLLGATE_IDENTITY_SEED: IDENTITY_SEED,
        TOLLGATE_SIGN_IN_DOMAINS: DOMAIN,
        ...anyProvider(more),
        ...options.env,
      },
      mode: options.mode ?? 'production',
      overrides: { 'server.data_dir': dataDir, 'server.port': options.port ?? 0, 'server.host': '127.0.0.1' },
    });
  const logs: string[] = [];
  const now = options.now ?? Date.now;
  const listed = createListedConfig({ load, providersOf: ({ providers }) => providers, readText: toml, now });
  const app: App = await createApp(await listed.read(), {
    ...NOTHING_LEFT_TO_LUCK,
    writeLog: (line) => logs.push(line),
    reloadAll: () => app.reload(() => listed.read()),
    ...(options.now ? { now: options.now } : {}),
    ...(options.elapsed ? { elapsed: options.elapsed } : {}),
    ...(options.wall ? { wall: options.wall } : {}),
    ...(options.payments ? { payments: options.payments } : {}),
    ...(options.random ? { random: options.random } : {}),
    ...(options.keepAliveMs ? { keepAliveMs: options.keepAliveMs } : {}),
  });
  const account = localAccount('tester');
  const { url } = await app.listen();
  const credit = parseUsd(options.credit ?? '100');
  if (credit > 0n)
    await app.ledger.transfer({
      id: `credit-${dataDir}`,
      from: treasuryOf('operator'),
      to: escrowOf(account),
      amount: credit,
      memo: '',
    });
  const { text: key } = (await app.keys.create({
    account,
    label: 'test',
    kind: options.mode === 'development' ? 'development' : 'live',
    expiresAt: null,
    limit: null,
    limitReset: null,
    allowedServices: null,
  }))!;

  const spine: Spine = {
    url: `${url}/api/v1`,
    origin: url,
    key,
    account,
    adminKey: ADMIN_KEY,
    app,
    provider,
    logs,
    writeFile(text) {
      more = text;
    },
    balance: async () => (await spine.app.ledger.balance(escrowOf(account))) ?? { available: 0n, locked: 0n },
    async quiet() {
      const until = performance.now() + atThisLoad(QUIET_MS);
      for (const pause of pauses()) {
        if ((await spine.app.database.query(HELD)).length === 0) break;
        if (performance.now() > until) throw new Error(`a lock was not resolved within ${atThisLoad(QUIET_MS)} ms`);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    },
    audit: () => spine.app.audit(),
    async faults() {
      await spine.quiet();
      return (await spine.app.audit()).checks.filter((check) => !check.ok);
    },
    locks: async () => (await spine.app.database.query(LOCKS)).map((row) => row['id'] as string),
    async tenant(name, usd, fields = {}) {
      const owner = localAccount(name);
      const amount = parseUsd(usd);
      if (amount > 0n)
        await spine.app.ledger.transfer({
          id: `credit-${name}-${dataDir}`,
          from: treasuryOf('operator'),
          to: escrowOf(owner),
          amount,
          memo: '',
        });
      const made = (await spine.app.keys.create({ account: owner, label: name, kind: 'live', ...fields }))!;
      return { account: owner, key: made.text, hash: made.record.hash };
    },
    async generation(id, with_ = key) {
      const response = await spine.get(`/generation?id=${id}`, { authorization: `Bearer ${with_}` });
      if (response.status !== 200) throw new Error(`/generation answered ${response.status}: ${await response.text()}`);
      return ((await response.json()) as { data: Generation }).data;
    },
    post: (path, body, headers = {}, signal) =>
      fetch(`${url}/api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    get: (path, headers = {}) =>
      fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } }),
    async stop() {
      // The gateway was stopped before and its memory released.
      if ('app' in spine) await spine.app.close();
      if (!options.provider) await provider.stop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
      letGo(spine, options.provider === undefined);
    },
  };
  return spine;
}

/** The last stopped spines, whose data tests may still read. */
const stopped: (() => void)[] = [];
const STOPPED_KEPT = 8;

/**
 * A worker keeps the variables of all its test files in memory, and thus their spines. So the data of spines that were
 * stopped earlier is released. Otherwise each would cost two megabytes in every garbage collection.
 */
function letGo(spine: Spine, ownProvider: boolean): void {
  stopped.push(() => {
    spine.logs.length = 0;
    if (ownProvider) spine.provider.log.length = 0;
    delete (spine as { app?: App }).app;
  });
  if (stopped.length > STOPPED_KEPT) stopped.shift()!();
}

/** The `data:` payloads of an SSE text. `[DONE]` stays text, the others are parsed. */
export function events(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => (event === 'data: [DONE]' ? '[DONE]' : (JSON.parse(event.slice('data: '.length)) as unknown)));
}
