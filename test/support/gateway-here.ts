import { anyProvider } from './any-provider.ts';
import { rm } from 'node:fs/promises';
import { loadConfig } from '#config';
import { createApp, type App } from '../../src/program/app/app.ts';
import { fillDataDirectory, newDataDirectory } from './data-directory.ts';
import { findFreePort } from './free-port.ts';
import { operatorOf, type Gateway, type GatewayOptions } from './gateway.ts';
import { NOTHING_LEFT_TO_LUCK } from './nothing-left-to-luck.ts';

/** A gateway in this process, with the same interface as one in its own process. It can't be killed, only stopped. */
export type GatewayHere = Omit<Gateway, 'kill9' | 'pid' | 'readyMs' | 'apiKey'>;

const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';

/**
 * Starts a gateway in this process, which takes a tenth of the time of a new process. Use it if the process itself
 * isn't under test. `term` closes the gateway like SIGTERM, and resolves with 0.
 */
export async function startGatewayHere(
  options: Omit<GatewayOptions, 'command' | 'args' | 'timeoutMs'> = {},
): Promise<GatewayHere> {
  const dataDir = options.dataDir ?? newDataDirectory();
  if (options.databaseUrl === undefined) fillDataDirectory(dataDir);
  const logs: string[] = [];
  const port = options.port ?? (await findFreePort());
  let app: App | null = null;
  let baseUrl = '';

  const start = async (): Promise<void> => {
    const config = loadConfig({
      file: 'tollgate.toml',
      text: options.toml ?? '',
      env: {
        TOLLGATE_ADMIN_KEY: ADMIN_KEY,
        DATABASE_URL: options.databaseUrl,
        REDIS_URL: options.redisUrl,
        ...anyProvider(options.toml),
        ...options.env,
      },
      mode: 'production',
      overrides: { 'server.data_dir': dataDir, 'server.port': port, 'server.host': '127.0.0.1' },
    });
    logs.length = 0;
    app = await createApp(config, { ...NOTHING_LEFT_TO_LUCK, writeLog: (line) => logs.push(line) });
    baseUrl = (await app.listen()).url;
  };
  const end = async (): Promise<void> => {
    const running = app;
    app = null;
    await running?.close();
  };
  await start();

  return {
    get baseUrl() {
      return baseUrl;
    },
    adminKey: ADMIN_KEY,
    dataDir,
    ...operatorOf(() => ({ baseUrl, adminKey: ADMIN_KEY })),
    async term() {
      await end();
      return 0;
    },
    restart: start,
    logs: () => logs.join('\n'),
    async stop() {
      await end();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
