import { ConfigError } from '#config';
import type { RegistrationProblem } from '#network/tunnel';
import type { Log } from './log.ts';
import type { ProviderConfig } from './provider-file.ts';
import { secretsOf } from './provider-secrets.ts';
import type { Proxy } from './proxy.ts';
import { serviceChanges } from './service-changes.ts';
import type { Wallet } from './wallet/wallet.ts';

/** The outcome of a reload. */
export interface ReloadReport {
  /** `refused`: by the router, so the old services stay. `waiting`: until the router is connected and accepts them. */
  readonly outcome: 'registered' | 'refused' | 'waiting';
  /** The differences between the services in force and those of the file, one for each line. */
  readonly changes: readonly string[];
  /** Keys that changed in the file, but keep their old value until the proxy is started again. */
  readonly restart: readonly string[];
  /** Why the router refused the services. Empty if it did not. */
  readonly problems: readonly RegistrationProblem[];
}

interface Loaded {
  readonly config: ProviderConfig;
  readonly wallet: Wallet | null;
}

interface ReloadOptions {
  readonly proxy: Pick<Proxy, 'reload' | 'services'>;
  /** The file and the wallet that the proxy was started with. */
  readonly started: Loaded;
  /** Reads the file again. Rejects with ConfigError. */
  readonly load: () => Promise<Loaded>;
  readonly log: Log & { hide(secrets: readonly (string | null)[]): void };
}

/**
 * A function that reads the file of a running proxy again, and registers its services in place of the old ones. Running
 * calls go on. Rejects with the ConfigError of a file that has problems, which changes nothing.
 */
export function createReload({ proxy, started, load, log }: ReloadOptions): () => Promise<ReloadReport> {
  const take = async (): Promise<ReloadReport> => {
    const next = await load();
    log.hide(secretsOf(next.config));
    const restart = fixedChanges(started, next);
    const changes = serviceChanges(proxy.services(), next.config.services);
    const outcome = await proxy.reload(next.config.services);
    return {
      outcome: outcome.kind,
      changes,
      restart,
      problems: outcome.kind === 'refused' ? outcome.problems : [],
    };
  };

  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const done = last.then(take);
    last = done.catch(() => {});
    return done.then(
      (report) => {
        tell(log, report);
        return report;
      },
      (error: unknown) => {
        const reason = error instanceof ConfigError ? error.message : error;
        log.error({ reason }, 'the file was not reloaded: the old one stays in use');
        throw error;
      },
    );
  };
}

function tell(log: Log, { outcome, changes, restart }: ReloadReport): void {
  if (outcome === 'registered') log.info({ changes }, 'the file was reloaded');
  if (outcome === 'waiting')
    log.warn({ changes }, 'the file was read: its services come into force when the router has accepted them');
  if (restart.length > 0) log.warn({ keys: restart }, 'these keep their old values until the proxy is started again');
}

/** The keys that a running proxy cannot change: they name the router, and who the provider is there. */
function fixedChanges(before: Loaded, after: Loaded): readonly string[] {
  const { router: old } = before.config;
  const { router: now } = after.config;
  const isOther = {
    'router.url': old.url !== now.url,
    // Without a domain of its own it follows the address.
    'router.siwx.domain': old.url === now.url && old.domain !== now.domain,
    'router.api_key': old.apiKey !== now.apiKey,
    'router.siwx': before.wallet?.accountId !== after.wallet?.accountId,
  };
  return Object.entries(isOther).flatMap(([key, changed]) => (changed ? [key] : []));
}
