import { createLog } from '../../src/providers/proxy/log.ts';
import { loadProviderFile } from '../../src/providers/proxy/provider-file.ts';
import { createProxy, type Proxy } from '../../src/providers/proxy/proxy.ts';
import { fleetWallet } from './fleet-wallet.ts';
import { seededRandom } from './provider/random.ts';

/* Many proxies in one process, each with its own wallet. The parent's messages start and end them. The process
   reports their events to its parent, and ends with it. */

export interface FleetSettings {
  readonly router: string;
  /** The domain that the wallets sign in to. */
  readonly domain: string;
  readonly seed: number;
  /** Blocks of a provider's file. `{index}` is replaced by the proxy's number. */
  readonly services: string;
}

export type FleetCommand =
  | { readonly do: 'settings'; readonly settings: FleetSettings }
  | { readonly do: 'start' | 'kill' | 'drain'; readonly index: number };

/** Events by the text of the proxy's log line. */
const TOLD = {
  'dialling the router': 'dial',
  'ready: calls can come': 'ready',
  'no connection to the router': 'lost',
  'the router does not accept a connection now': 'lost',
  'the router is shutting down; running calls continue, and the proxy reconnects': 'lost',
} as const;

export interface FleetEvent {
  /** `failed`: something that must not happen to a proxy. */
  readonly event: (typeof TOLD)[keyof typeof TOLD] | 'listening' | 'drained' | 'failed';
  readonly index: number;
  /** The number of this start of the proxy in this process, from 1. */
  readonly life: number;
  readonly at: number;
  readonly detail: string;
}

function runFleet(
  settings: FleetSettings,
  tell: (event: FleetEvent) => void,
): (command: Exclude<FleetCommand, { do: 'settings' }>) => void {
  const { router, domain, services, seed } = settings;
  const lives = new Map<number, number>();
  const proxies = new Map<number, Proxy>();
  const told = new Map<string, FleetEvent['event']>(Object.entries(TOLD));

  function start(index: number): void {
    const life = (lives.get(index) ?? 0) + 1;
    lives.set(index, life);
    const wallet = fleetWallet(seed, index);
    const say = (event: FleetEvent['event'], detail: string) => tell({ event, index, life, at: Date.now(), detail });
    const text = `[router]\nurl = "${router}"\n[router.siwx]\nchain_id = "${wallet.chainId}"\nkeypair_file = "not-read.json"\ndomain = "${domain}"\n${services.replaceAll('{index}', String(index))}`;
    const log = createLog({
      level: 'debug',
      style: 'json',
      secrets: [],
      now: Date.now,
      write(line) {
        const { level, msg } = JSON.parse(line) as { level: string; msg: string };
        const event =
          told.get(msg) ?? (level === 'error' || msg === 'the router does not accept the credential' ? 'failed' : null);
        if (event !== null) say(event, line);
      },
    });
    const config = loadProviderFile({ file: null, text, env: { TEST_UPSTREAM_KEY: 'upstream-secret-canary' } });
    const proxy = createProxy({
      config,
      wallet,
      log,
      now: Date.now,
      random: seededRandom(seed + index * 1_000 + life),
    });
    proxies.set(index, proxy);
    proxy.closed.then(
      (code) => say(code === 0 ? 'drained' : 'failed', `exit code ${code}`),
      (error: unknown) => say('failed', String(error)),
    );
    proxy.start();
  }

  return ({ do: what, index }) => {
    const proxy = proxies.get(index);
    if (what === 'start') start(index);
    else if (what === 'kill') proxy?.kill();
    else void proxy?.close();
  };
}

if (import.meta.main) {
  let command: ReturnType<typeof runFleet> = () => {};
  const tell = (event: FleetEvent) => void (process.connected && process.send?.(event));
  process.on('message', (message: FleetCommand) => {
    if (message.do === 'settings') command = runFleet(message.settings, tell);
    else command(message);
  });
  process.on('disconnect', () => process.exit(0));
  tell({ event: 'listening', index: -1, life: 0, at: Date.now(), detail: '' });
}
