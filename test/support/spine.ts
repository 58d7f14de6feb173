import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { escrowOf, parseUsd, treasuryOf, type AuditReport, type Balance } from '#billing';
import { loadConfig, localAccount } from '#gateway';
import { createApp, type App } from '../../src/app.ts';
import { startProvider, type TestProvider } from './provider.ts';

/** A whole gateway in this process, on a real socket and a real database, with one account that has money and one test provider behind it. */
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
  balance(): Promise<Balance>;
  /** Resolves when no call holds a lock any more. */
  quiet(): Promise<void>;
  audit(): Promise<AuditReport>;
  post(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

export interface SpineOptions {
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** USD of the account; '0' leaves it unfunded. */
  readonly credit?: string;
  /** More TOML: sections and `[[models]]`. `{provider}` is replaced by the test provider's address. */
  readonly toml?: string;
  readonly provider?: TestProvider;
  readonly mode?: 'development' | 'production';
  readonly now?: () => number;
  readonly random?: () => number;
}

/** The model that every spine serves: 1 USD per 1M prompt tokens, 2 USD per 1M completion tokens. */
export const MODEL = 'test/model';

const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';

export async function startSpine(options: SpineOptions = {}): Promise<Spine> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-spine-'));
  const provider = options.provider ?? (await startProvider());
  const toml = `
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
${(options.toml ?? '').replaceAll('{provider}', provider.url)}`;
  const config = loadConfig({
    file: 'spine.toml',
    text: toml,
    env: {
      TEST_UPSTREAM_KEY: 'upstream-secret-canary',
      TOLLGATE_ADMIN_KEY: ADMIN_KEY,
      DATABASE_URL: options.databaseUrl,
      REDIS_URL: options.redisUrl,
      TOLLGATE_IDENTITY_SEED: '00'.repeat(31) + '01',
    },
    mode: options.mode ?? 'production',
    overrides: { 'server.data_dir': dataDir, 'server.port': 0, 'server.host': '127.0.0.1' },
  });
  const logs: string[] = [];
  const app = await createApp(config, {
    writeLog: (line) => logs.push(line),
    ...(options.now ? { now: options.now } : {}),
    ...(options.random ? { random: options.random } : {}),
  });
  const account = localAccount('tester');
  const { url } = await app.listen();
  const credit = parseUsd(options.credit ?? '100');
  if (credit > 0n) await app.ledger.transfer({ id: `credit-${dataDir}`, from: treasuryOf('operator'), to: escrowOf(account), amount: credit, memo: '' });
  const { text: key } = (await app.keys.create({ account, label: 'test', kind: options.mode === 'development' ? 'development' : 'live', expiresAt: null, limit: null, limitReset: null, allowedServices: null }))!;

  const spine: Spine = {
    url: `${url}/api/v1`,
    origin: url,
    key,
    account,
    adminKey: ADMIN_KEY,
    app,
    provider,
    logs,
    balance: async () => (await app.ledger.balance(escrowOf(account))) ?? { available: 0n, locked: 0n },
    async quiet() {
      const until = Date.now() + 20_000;
      while ((await spine.balance()).locked > 0n) {
        if (Date.now() > until) throw new Error('a lock was not resolved within 20 s');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    audit: () => app.audit(),
    post: (path, body, headers = {}, signal) =>
      fetch(`${url}/api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    get: (path, headers = {}) => fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } }),
    async stop() {
      await app.close();
      if (!options.provider) await provider.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return spine;
}

/** The `data:` payloads of an SSE text, `[DONE]` as it is, the others parsed. */
export function events(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => (event === 'data: [DONE]' ? '[DONE]' : (JSON.parse(event.slice('data: '.length)) as unknown)));
}
