import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { READY } from './dial-in.ts';
import { PROGRAM } from './gateway.ts';
import { createKeeper } from './server-process.ts';
import { DOMAIN, solanaWallet, type TestWallet } from './wallets.ts';

/** `tollgate provide` in its own process. The process ends with this one at the latest. */
export interface ProvideProcess {
  readonly wallet: TestWallet;
  /** The provider's public key. */
  readonly id: string;
  readonly pid: number;
  /** Sends SIGKILL, which simulates a crash. */
  kill9(): Promise<void>;
  /** Sends SIGTERM without waiting. */
  term(): void;
  /** Resolves with its exit code. null if a signal ended it. */
  exited(): Promise<number | null>;
  /** Its output. */
  logs(): string;
  stop(): Promise<void>;
}

/**
 * Starts it with a new wallet and waits until the services can be called. `services` are the blocks of its file. Keys
 * of upstreams come from TEST_UPSTREAM_KEY.
 */
export async function startProvide(options: {
  readonly router: string;
  readonly services: string;
  readonly wallet?: TestWallet;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<ProvideProcess> {
  const wallet = options.wallet ?? solanaWallet();
  const home = mkdtempSync(join(tmpdir(), 'tollgate-provide-'));
  const keeper = createKeeper([home]);
  const secret =
    wallet.namespace === 'solana'
      ? JSON.stringify([...wallet.secret])
      : `0x${Buffer.from(wallet.secret).toString('hex')}`;
  writeFileSync(join(home, 'wallet.json'), secret, { mode: 0o600 });
  const router = `[router]\nurl = "${options.router}"\n[router.siwx]\nchain_id = "${wallet.chainId}"\nkeypair_file = "wallet.json"\ndomain = "${DOMAIN}"\n`;
  const file = join(home, 'provider.toml');
  writeFileSync(file, `${router}${options.services}`);
  const process_ = keeper.start({
    file: process.execPath,
    args: [...PROGRAM, 'provide', '--config', file, '--log-level', 'debug'],
    cwd: home,
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HOME: home,
      TEST_UPSTREAM_KEY: 'upstream-secret-canary',
      ...options.env,
    },
  });
  try {
    await process_.wrote(READY);
  } catch (error) {
    await keeper.close();
    throw error;
  }
  return {
    wallet,
    id: wallet.providerId,
    pid: process_.pid,
    async kill9() {
      process_.signal('SIGKILL');
      await process_.exited;
    },
    term: () => process_.signal('SIGTERM'),
    async exited() {
      await process_.exited;
      return process_.exitCode;
    },
    logs: () => process_.output(),
    stop: () => keeper.close(),
  };
}
