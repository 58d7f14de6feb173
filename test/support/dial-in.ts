import { createLog } from '../../src/providers/proxy/log.ts';
import type { OfferingOutcome } from '../../src/providers/proxy/offering.ts';
import { loadProviderFile } from '../../src/providers/proxy/provider-file.ts';
import { createProxy, type ProxyLimits } from '../../src/providers/proxy/proxy.ts';
import type { ExitCode } from '../../src/providers/proxy/redial.ts';
import { DOMAIN, solanaWallet, type TestWallet } from './wallets.ts';

/** A provider's proxy in this process, connected to a gateway under test. */
export interface DialledIn {
  /** The provider's public key. */
  readonly id: string;
  readonly wallet: TestWallet;
  /** The proxy's log lines, parsed. */
  readonly lines: Record<string, unknown>[];
  /** Resolves when `count` log lines with this text exist, also if they were logged before. */
  logged(text: string, count?: number): Promise<Record<string, unknown>>;
  readonly closed: Promise<ExitCode>;
  /** Offers the services of these blocks in place of those so far, as a reload of its file does. */
  reload(services: string): Promise<OfferingOutcome>;
  /** Drains the proxy, like SIGTERM. */
  close(): Promise<ExitCode>;
  /** Ends the proxy at once, like SIGKILL. */
  kill(): void;
}

export interface DialInOptions {
  /** The gateway's address. */
  readonly router: string;
  /** The service blocks of the provider's file. */
  readonly services: string;
  readonly wallet?: TestWallet;
  /** Uses this API key instead of a wallet. */
  readonly apiKey?: string;
  readonly domain?: string;
  readonly limits?: Partial<ProxyLimits>;
  /** Waits until the services can be called. Default true. */
  readonly ready?: boolean;
  readonly random?: () => number;
}

export const READY = 'ready: calls can come';

/** A `[[models]]` block of a provider's file. Prices are USD per 1M tokens. */
export function offeredModel(model: {
  readonly url: string;
  readonly name?: string;
  readonly provider?: string;
  readonly prompt?: number | string;
  readonly completion?: number | string;
  /** Additional lines of the block itself. */
  readonly lines?: string;
  /** Additional lines of `[models.params]`. */
  readonly params?: string;
}): string {
  const {
    url,
    name = 'tunnel/model',
    provider = 'Tunnel',
    prompt = 1,
    completion = 2,
    lines = '',
    params = '',
  } = model;
  return `
[[models]]
name = "${name}"
display_name = "${provider}: Model"
provider_name = "${provider}"
context_length = 100000
max_output_tokens = 4096
${lines}
[models.pricing]
prompt = ${prompt}
completion = ${completion}
[models.params]
model = "upstream-of-${provider}"
api_base = "${url}"
api_key = "std::env::TEST_UPSTREAM_KEY"
${params}
`;
}

/** Starts a proxy. By default waits until it is ready. */
export async function dialIn(options: DialInOptions): Promise<DialledIn> {
  const { router, services, apiKey, domain = DOMAIN, limits, ready = true, random = Math.random } = options;
  const wallet = options.wallet ?? solanaWallet();
  const auth =
    apiKey === undefined
      ? `[router.siwx]\nchain_id = "${wallet.chainId}"\nkeypair_file = "not-read.json"\ndomain = "${domain}"\n`
      : `api_key = "${apiKey}"\n`;
  const load = (blocks: string) =>
    loadProviderFile({
      file: 'provider.toml',
      text: `[router]\nurl = "${router}"\n${auth}${blocks}`,
      env: { TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
    });
  const config = load(services);
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const log = createLog({
    level: 'debug',
    style: 'json',
    secrets: [],
    now: Date.now,
    write(line) {
      lines.push(JSON.parse(line) as Record<string, unknown>);
      for (const wake of waiting) wake();
    },
  });
  const proxy = createProxy({
    config,
    wallet: apiKey === undefined ? wallet : null,
    log,
    now: Date.now,
    random,
    ...(limits ? { limits } : {}),
  });
  const logged = (text: string, count = 1) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(check);
        reject(
          new Error(
            `the proxy did not log "${text}" in 60 s. It logged:\n${lines.map((line) => JSON.stringify(line)).join('\n')}`,
          ),
        );
      }, 60_000);
      const check = () => {
        const found = lines.filter((line) => line['msg'] === text);
        if (found.length < count) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve(found[count - 1]!);
      };
      waiting.add(check);
      check();
    });
  proxy.start();
  if (ready) {
    const early = proxy.closed.then((code) =>
      Promise.reject(
        new Error(`the proxy ended with ${code}: ${lines.map((line) => JSON.stringify(line)).join('\n')}`),
      ),
    );
    // After the proxy is ready nobody awaits this promise.
    early.catch(() => {});
    await Promise.race([logged(READY), early]);
  }
  return {
    id: wallet.providerId,
    wallet,
    lines,
    logged,
    closed: proxy.closed,
    reload: (blocks) => proxy.reload(load(blocks).services),
    close: () => proxy.close(),
    kill: () => proxy.kill(),
  };
}
