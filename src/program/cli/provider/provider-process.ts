import { createScrubber } from '#security';
import { writeLogLine } from '#wire/text-line';
import { ConfigError, readTomlFile } from '#config';
import { createLog, createProxy, createReload, loadChecks, loadProvider, type ProviderConfig, secretsOf } from '#proxy';
import type { Wallet } from '#proxy/wallet';
import { VERSION } from '../../../foundation/version.ts';
import { OWN_NAME } from '../command-line.ts';
import { createListedConfig, keepListed, offersInWords } from '../gateway/listed-config.ts';
import { type FileFlag, listenForReload, providerFile } from './provider-reload.ts';
import { catchReload, catchSignals, isTerminalGone } from '../gateway/signals.ts';
import { painter, wantsColor } from '../terminal.ts';

export interface ProvideFlags extends FileFlag {
  readonly validate?: boolean;
  readonly reload?: boolean;
  readonly probe: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

/**
 * Runs a provider's proxy until a signal or the router ends it. With `--validate` it checks the file, and tries the
 * services in the file.
 */
export async function runProvider(flags: ProvideFlags): Promise<void> {
  const { env } = process;
  const file = providerFile(flags);
  if (flags.validate) return validate(file, flags.probe);

  const listed = createListedConfig({
    load: (text, offered, offers) => loadProvider({ file, text, offered, offers, env, program: OWN_NAME }),
    providersOf: ({ config }) => config.providers,
    readText: () => readTomlFile(file),
  });
  const started = await listed.read();
  const { config, wallet } = started;
  const log = createLog({
    level: flags.logLevel,
    style: process.stdout.isTTY ? 'text' : 'json',
    color: wantsColor(process.stdout),
    secrets: secretsOf(config),
    write: writeLogLine,
    now: Date.now,
  });
  const proxy = createProxy({
    config,
    wallet,
    log,
    now: Date.now,
    random: Math.random,
    env,
    version: VERSION,
  });
  for (const line of offersInWords(listed.offers())) log.info({}, line);
  const reload = createReload({ proxy, started, log });
  const readAgain = () => reload(() => listed.read());
  const stop = catchSignals();
  // A proxy in a terminal still ends with it.
  const onHangUp = catchReload(async () => (isTerminalGone() ? process.kill(process.pid, 'SIGTERM') : readAgain()));
  const requests = await listenForReload(file, readAgain, log);
  const watcher = keepListed(listed, { take: () => reload(listed.current), warn: (line) => log.warn({}, line) });
  // Programs that this process started end with it, whatever the reason for its end.
  process.on('exit', proxy.kill);
  try {
    proxy.start();
    void stop.requested.then(() => proxy.close());
    process.exitCode = await proxy.closed;
  } finally {
    watcher.stop();
    process.off('exit', proxy.kill);
    requests?.close();
    onHangUp.forget();
    stop.forget();
  }
}

async function validate(file: string, probe: boolean): Promise<void> {
  // Loaded here, because a running proxy does not need it.
  const { describeService, printChecks, silentLog } = await import('../gateway/service-report.ts');
  const paint = painter();
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  let loaded: { readonly config: ProviderConfig; readonly wallet: Wallet | null };
  try {
    loaded = await createListedConfig({
      load: (text, offered, offers) =>
        loadProvider({ file, text, offered, offers, env: process.env, program: OWN_NAME }),
      providersOf: ({ config }) => config.providers,
      readText: () => readTomlFile(file),
      ask: probe,
    }).read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    print(`${paint('red', '✗')} ${error.message}`);
    process.exitCode = 1;
    return;
  }
  const { config, wallet } = loaded;
  const tick = paint('green', '✓');
  print(`${tick} ${file}`);
  print(`${tick} router    ${config.router.url}  ${wallet === null ? 'with an API key' : `as ${wallet.accountId}`}`);
  for (const one of config.services) print(`${tick} ${one.service.primitive.padEnd(9)} ${describeService(one)}`);
  if (!probe) return;

  print('');
  const scrub = createScrubber(secretsOf(config));
  const { providerChecks, runChecks } = await loadChecks();
  const checks = providerChecks(
    config,
    wallet,
    { env: process.env, version: VERSION, log: await silentLog() },
    Date.now,
  );
  await printChecks(checks, runChecks, scrub);
}
