import { existsSync, statSync } from 'node:fs';
import { printable } from '#security';
import { type Config, literalSecrets, readTomlFile } from '#config';

/**
 * Warnings and hints for the operator of a production gateway at its start, one line each. `file` is the configuration
 * file, null without one.
 */
export function startNotices(config: Config, file: string | null, env: NodeJS.ProcessEnv): readonly string[] {
  const lines = [
    warningToRoot(config.dataDir),
    nothingToSell(config, file),
    config.tunnel.providers === null ? `Providers: ${NO_PROVIDERS}` : null,
    ...missingAddress(config),
    unusedExporter(config, env['OTEL_LOGS_EXPORTER'] ?? ''),
    lateCharges(config),
    secretsIn(file),
  ];
  return lines.filter((line) => line !== null);
}

/** Says that no provider can connect because the file does not say who may, with the line to add. */
export const NO_PROVIDERS =
  'nobody may connect, because the file does not say who may. Add to it, below [tunnel]: providers = "anyone" for an open market, a list of public keys or account ids for some, or "nobody"';

/** Says that no wallet can sign in because the gateway does not know its own name, with the line to add. */
export const NO_SIGN_IN =
  "no wallet can sign in, nor a provider's: set [sign_in] domains, or server.public_url, to the host that they know this gateway by";

/** Whether the file says that some provider may connect. */
export const admitsProviders = ({ tunnel: { providers } }: Config): boolean =>
  providers !== null && providers !== 'nobody' && (providers === 'anyone' || providers.length > 0);

/** Says what agents cannot do because the gateway does not know its own address. */
export const NO_AGENT_ADDRESS =
  'agents cannot send notifications about their tasks, and run tokens do not say where to call, because this gateway does not know its own address: set server.public_url';

/** Whether this file has agents, and no address for them. */
export const agentsLackAddress = ({ publicUrl, services }: Config): boolean =>
  publicUrl === null && services.some(({ service }) => service.primitive === 'agent');

/** Names what does not work because the gateway does not know its own address, one line for each. */
function missingAddress(config: Config): readonly string[] {
  const noSignIn = config.signIn.domains.length === 0;
  const sells = admitsProviders(config);
  return [
    ...(noSignIn && sells ? [`Providers: ${NO_SIGN_IN}`] : []),
    ...(noSignIn && !sells && config.chains.length > 0
      ? [`Wallets: ${NO_SIGN_IN}. They can pay for calls, but not see or withdraw what is left`]
      : []),
    ...(agentsLackAddress(config) ? [`Agents: ${NO_AGENT_ADDRESS}`] : []),
  ];
}

/** Says what a crash can undo. null if it can undo nothing that was answered. */
const lateCharges = ({ ledger: { flush } }: Pick<Config, 'ledger'>): string | null =>
  flush === null
    ? null
    : `Charges are on the disk up to ${flush} ms after the answer (ledger.flush): a crash undoes the charges of at most this time, and providers lose them`;

/** Says which secrets the file itself has, and where they are safer. null if it has none. */
export function secretsIn(file: string | null): string | null {
  if (file === null) return null;
  const secrets = literalSecrets(readTomlFile(file), file).map(({ key, line }) => `${key} (line ${line ?? '?'})`);
  return secrets.length === 0
    ? null
    : `${file} has secrets in it: ${secrets.join(', ')}. Whoever reads the file, or a copy of it, has them. Write "std::env::NAME" in their place, and set NAME, or NAME_FILE to the path of a file with the secret`;
}

/** Says that nothing is on sale, and what to do. null if the file has services, or lets providers in. */
function nothingToSell(config: Config, file: string | null): string | null {
  if (config.services.length > 0 || admitsProviders(config)) return null;
  const where = file === null ? 'no configuration file is named' : `${file} has no services`;
  return `Nothing is on sale: ${where}, and no provider may connect. ${
    file === null ? 'Name a file with --config' : 'Add [[models]] or other services'
  }, or let providers in with tunnel.providers`;
}

/** Facts for the log when a gateway listens: its address, and how many services of each kind its file has. */
export function listeningFacts(config: Pick<Config, 'services' | 'dataDir'>, address: string): Record<string, unknown> {
  const count = (primitive: string) =>
    new Set(config.services.filter((one) => one.service.primitive === primitive).map((one) => one.service.name)).size;
  const kinds = {
    models: count('model'),
    tools: count('tool'),
    agents: count('agent'),
    images: count('image'),
    videos: count('video'),
  };
  return {
    address,
    ...Object.fromEntries(Object.entries(kinds).filter(([kind, services]) => services > 0 || kind === 'models')),
    data: config.dataDir,
  };
}

/**
 * The warning of a gateway that root runs in the data directory of another user. null if no other user is concerned.
 * The gateway of that user could not read what root makes there.
 */
function warningToRoot(dataDir: string): string | null {
  if (process.getuid?.() !== 0 || !existsSync(dataDir)) return null;
  const { uid } = statSync(dataDir);
  return uid === 0
    ? null
    : `Root runs this gateway, and the data directory belongs to user ${uid}. If user ${uid} runs the gateway otherwise, stop this one: that user may not read files that root makes`;
}

/**
 * The warning that OpenTelemetry's variable asks for an exporter of log lines that this gateway will not use. null if
 * it asks for none, or for the one that is used.
 */
function unusedExporter({ logsExporter, otlpEndpoint }: Config, endpoint: string): string | null {
  if (endpoint === '' || endpoint === 'none' || (logsExporter === 'otlp' && otlpEndpoint !== null)) return null;
  const why = logsExporter === 'otlp' ? 'telemetry.otlp_endpoint is not set' : 'only otlp sends them';
  return `Lines of the log are not sent to a collector, although OTEL_LOGS_EXPORTER is "${printable(endpoint, 60)}": ${why}`;
}
