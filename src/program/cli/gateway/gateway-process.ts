import type { Config } from '#config';
import { type AppOptions, createApp, type App } from '#app';
import { removeGatewayFile, writeGatewayFile } from '../discovery.ts';
import { explainClusterListen, explainListen } from './start-checks.ts';
import { keepListed, type ListedConfig } from './listed-config.ts';
import { catchReload, catchSignals } from './signals.ts';
import { wantsColor } from '../terminal.ts';

interface GatewayHooks {
  readonly options?: AppOptions;
  /** The file that the configuration was read from; null for none. */
  readonly configFile: string | null;
  /**
   * Reads the configuration again, on SIGHUP and when the admin API asks for it. If absent, SIGHUP ends the process.
   */
  readonly load?: () => Config | Promise<Config>;
  /** The configuration with the models of its providers, which are asked again and again. */
  readonly listed?: Pick<ListedConfig<Config>, 'askAgain' | 'current' | 'offers'>;
  /** False if another process writes the discovery file. */
  readonly discovery?: boolean;
  /** False if the web pages are built only for their first visitor. */
  readonly pages?: boolean;
  /** Called when the app is built but does not listen yet. */
  readonly prepare?: (app: App) => Promise<void>;
  /** Called when it listens and the discovery file is written. `baseUrl` is the address for this machine. */
  readonly ready: (app: App, baseUrl: string) => void | Promise<void>;
  readonly stopping?: (app: App) => void;
  /** Called after everything else, even if the start failed. */
  readonly cleanUp?: () => Promise<void>;
}

/**
 * Runs a gateway until a signal ends it. The first signal stops it gracefully, a SIGTERM after the delay for load
 * balancers. A second signal ends the delay, and after the delay the process. Resolves when everything is closed.
 * Rejects if the gateway cannot start.
 */
export async function runGateway(config: Config & { readonly adminKey: string }, hooks: GatewayHooks): Promise<void> {
  let app: App | null = null;
  let watch: { stop(): void } | null = null;
  const stop = catchSignals();
  const { load } = hooks;
  // A SIGHUP may come while the app is being built.
  const { promise: built, resolve: tell } = Promise.withResolvers<App>();
  const reload = load && (async () => (await built).reload(load));
  const onHangUp = reload ? catchReload(reload) : null;
  try {
    app = await createApp(config, {
      color: wantsColor(process.stdout),
      ...(reload ? { reloadAll: reload } : {}),
      ...hooks.options,
    }).catch((error: unknown) => Promise.reject<App>(explainClusterListen(error, config)));
    tell(app);
    await hooks.prepare?.(app);
    const { url } = await app.listen().catch((error: unknown) => Promise.reject(explainListen(error, config)));
    const baseUrl = reachable(url);
    if (hooks.discovery ?? true) writeGatewayFile(config, { baseUrl, configFile: hooks.configFile });
    // In the background. A visitor who comes before the pages are ready waits for them.
    if (hooks.pages ?? true) void app.preparePages();
    await hooks.ready(app, baseUrl);
    watch = hooks.listed ? keepModels(hooks.listed, app) : null;
    await stop.requested;
    if (config.limits.shutdownDelayMs > 0 && !stop.hurried()) {
      app.announceStop();
      app.logger.info(
        { delay_ms: config.limits.shutdownDelayMs },
        'unready: load balancers may leave, new calls are still served',
      );
      await stop.delay(config.limits.shutdownDelayMs);
    }
    hooks.stopping?.(app);
  } finally {
    watch?.stop();
    try {
      await app?.close();
    } finally {
      removeGatewayFile(config.dataDir);
      await hooks.cleanUp?.();
      stop.forget();
      onHangUp?.forget();
    }
  }
}

/** Keeps the models of the file's providers as these list them. */
const keepModels = (listed: NonNullable<GatewayHooks['listed']>, { reload, logger }: App) =>
  keepListed(listed, { take: () => reload(listed.current), warn: (line) => logger.warn(line) });

/** The address for clients on this machine. A listener on all addresses is reached at the loopback address. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:').replace(/\/+$/, '');
}
