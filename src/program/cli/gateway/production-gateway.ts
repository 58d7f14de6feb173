import { databaseName } from '#store/database-name';
import { type Config, loadConfig, readTomlFile } from '#config';
import { CliError, say } from '../terminal.ts';
import { configPath } from '../command-line.ts';
import { loadAdminKey } from '../admin/admin-key.ts';
import { realPath, onDatabase } from '../discovery.ts';
import { checkStart, freshDirectory } from './start-checks.ts';
import { runGateway } from './gateway-process.ts';
import { createListedConfig, offersInWords } from './listed-config.ts';
import { listeningFacts, startNotices } from './start-notices.ts';

export interface ServeFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: string;
  readonly data?: string;
  readonly validate?: boolean;
  readonly probe?: boolean;
  readonly workers?: string;
}

/** Runs the production gateway until a signal ends it. With `--validate` it only prints a summary of the file. */
export async function runProduction(flags: ServeFlags): Promise<void> {
  const file = configPath(flags.config, 'serve', process.env);
  const listed = createListedConfig<Config>({
    load: (text, offered = []) =>
      loadConfig({
        file,
        text,
        offered,
        env: process.env,
        mode: 'production',
        overrides: { 'server.host': flags.host, 'server.port': flags.port, 'server.data_dir': flags.data },
      }),
    providersOf: ({ providers }) => providers,
    readText: () => (file === null ? '' : readTomlFile(file)),
    // A check of the file asks nobody, unless it is to call its services.
    ask: !flags.validate || (flags.probe ?? false),
  });
  // Loaded only if needed, because a start waits for everything that it loads.
  const workers = flags.workers === undefined ? null : await import('./workers.ts');
  const count = workers?.workerCount(flags.workers ?? '') ?? 0;
  if (flags.probe && !flags.validate)
    throw new CliError('--probe is for --validate: tollgate serve --validate --probe');
  if (flags.validate) {
    const { validate } = await import('./validate-gateway.ts');
    const read = async () => {
      const config = await listed.read();
      workers?.checkWorkers(config, count);
      return config;
    };
    return await validate(read, { file, workers: count, probe: flags.probe ?? false });
  }

  const loaded = await listed.read();
  const child = workers === null ? null : await import('./worker.ts');
  const slot = child?.workerSlot() ?? null;
  if (slot === null) await checkStart(loaded, count);
  const fresh = slot === null ? freshDirectory(loaded) : null;
  const config = { ...loaded, adminKey: loaded.adminKey ?? loadAdminKey(loaded.dataDir) };
  const withKey = (next: Config) => ({ ...next, adminKey: next.adminKey ?? config.adminKey });
  const source = {
    ...listed,
    read: async (text?: string) => withKey(await listed.read(text)),
    current: async () => withKey(await listed.current()),
  };
  if (child !== null && slot !== null) return child.runWorker(config, slot, source);
  say(`Serves ${onDatabase(databaseName(config.databaseUrl), realPath(config.dataDir))}`);
  for (const notice of [...startNotices(config, file, process.env), ...offersInWords(listed.offers())]) say(notice);
  let listens = false;
  try {
    if (workers !== null) {
      listens = await workers.superviseWorkers(config, { count, configFile: file });
      if (!listens) fresh?.clear(null);
      return;
    }
    await runGateway(config, {
      configFile: file,
      load: () => source.read(),
      listed: source,
      ready: (app, baseUrl) => {
        listens = true;
        app.logger.info(listeningFacts(config, { address: baseUrl, file }), 'listening');
      },
      stopping: (app) => app.logger.info('stopping: running calls may finish'),
    });
  } catch (error) {
    if (!listens) fresh?.clear(error);
    throw error;
  }
}
