import { dirname, resolve } from 'node:path';
import {
  BLOCK_TABLES,
  complain,
  ConfigError,
  freeze,
  indexLines,
  isTable,
  PACKAGES,
  parseToml,
  readBlocks,
  readProviders,
  readTable,
  readTomlFile,
  show,
  unknownKey,
  valuesOf,
  type Config,
  type Environment,
  type ConfigReading,
  type ServiceConfig,
  type ServiceTarget,
  bearerKey,
  domainFault,
  keypairFileOption,
  option,
  privateKeyOption,
  readUrl,
  WrongValue,
} from '#config';
import type { ListedProvider, OfferedBlock } from '#config/known-providers';
import { loadWallet } from './wallet/load-wallet.ts';
import { WalletError, type Wallet, parseChainId } from './wallet/wallet.ts';

/**
 * A provider's configuration: the router to dial, the credential for it, and the services to offer. It is read once at
 * start and frozen.
 */
export interface ProviderConfig {
  /** Path of the TOML file. null if only text was given. */
  readonly file: string | null;
  readonly router: RouterConfig;
  /** At least one, or those of `providers` are still missing. All have the same `service.providerName`. */
  readonly services: readonly ServiceConfig[];
  /** Providers whose models are offered at their list prices. */
  readonly providers: readonly ListedProvider[];
  readonly packages: Config['packages'];
}

export interface RouterConfig {
  /** Without a trailing slash; paths such as TUNNEL_PATH are appended. */
  readonly url: string;
  /** Host that the wallet signs in to, with the port if it isn't the scheme's default port. */
  readonly domain: string;
  /** null if the provider has only an API key. If there are both, the wallet is used. */
  readonly wallet: WalletConfig | null;
  /** Secret. */
  readonly apiKey: string | null;
}

/** The provider's wallet. `chainId` is CAIP-2. Exactly one of `keypairFile` and `privateKey` is set. */
type WalletConfig =
  | { readonly chainId: string; readonly keypairFile: string; readonly privateKey?: undefined }
  | { readonly chainId: string; readonly privateKey: string; readonly keypairFile?: undefined };

export interface LoadProviderOptions {
  readonly file: string | null;
  /**
   * The file's text, if it is already read. Then `file` only names it in messages, and relative paths start from its
   * folder.
   */
  readonly text?: string;
  /** Models of the file's `[[providers]]`. undefined before these were asked. */
  readonly offered?: readonly OfferedBlock[] | undefined;
  /** The outcome of asking each of `[[providers]]`, in words. */
  readonly offers?: readonly string[] | undefined;
  readonly env: Environment;
  /** How this program was called, for commands in messages. Default: `tollgate`. */
  readonly program?: string;
}

const BLOCKS_MAX = 10_000;

/** Reads a provider's TOML file, but not the wallet's key. Throws ConfigError with all problems of the file. */
export function loadProviderFile(options: LoadProviderOptions): ProviderConfig {
  const { config, reading } = readProvider(options);
  if (!config || reading.problems.length > 0) throw new ConfigError(reading.problems);
  return freeze(config);
}

/** Reads a provider's TOML file and its wallet. Rejects with ConfigError. An unusable wallet is one of its problems. */
export async function loadProvider(
  options: LoadProviderOptions,
): Promise<{ readonly config: ProviderConfig; readonly wallet: Wallet | null }> {
  const { program = 'tollgate' } = options;
  const { config, walletConfig, reading } = readProvider(options);
  let wallet: Wallet | null = null;
  try {
    if (walletConfig) wallet = await loadWallet(walletConfig, program);
  } catch (error) {
    if (!(error instanceof WalletError)) throw error;
    const key = walletConfig?.keypairFile === undefined ? 'private_key' : 'keypair_file';
    // The last sentence of the message says what to do.
    const [, wrong = error.message, right = `a wallet of the chain in chain_id; \`${program} keygen\` makes one`] =
      /^(.+)\. (.+)$/s.exec(error.message) ?? [];
    complain(reading, `router.siwx.${key}`, wrong, right);
  }
  if (!config || reading.problems.length > 0) throw new ConfigError(reading.problems);
  return { config: freeze(config), wallet };
}

/** The parts of the file that could be read. They are valid only if `reading` has no problems. */
interface ReadProvider {
  readonly config: ProviderConfig | null;
  /** Set even if other parts have problems, so that problems of the wallet's key can be reported together with them. */
  readonly walletConfig: WalletConfig | null;
  readonly reading: ConfigReading;
}

function readProvider({
  file,
  text = file === null ? '' : readTomlFile(file),
  offered,
  offers = [],
  env,
}: LoadProviderOptions): ReadProvider {
  const reading: ConfigReading = { file, lineOf: indexLines(text), env, problems: [] };
  const table = parseToml(text, file);
  const directory = resolve(dirname(file ?? '.'));

  const known: readonly string[] = ['router', ...BLOCK_TABLES, 'providers', 'packages'];
  const elsewhere = Object.keys(ROUTER_OPTIONS).map((key) => `router.${key}`);
  for (const key of Object.keys(table)) if (!known.includes(key)) unknownKey(key, key, known, reading, elsewhere);

  const { router, walletConfig } = readRouter(table['router'], directory, reading);
  const rules = { max: BLOCKS_MAX, oneProvider: true };
  const providers = readProviders(table, rules, reading);
  const services = readBlocks(table, { commands: true, directory, packages: true }, rules, reading, offered);
  if (table['providers'] !== undefined) {
    if (offered !== undefined && services.length === 0 && reading.problems.length === 0)
      complain(
        reading,
        'providers',
        ['offer no model now', ...offers].join('; '),
        'a provider that answers, and models that have a price',
      );
  } else if (!BLOCK_TABLES.some((name) => table[name] !== undefined)) {
    complain(
      reading,
      'models',
      'is missing, and nothing else is offered',
      `at least one block: ${[...BLOCK_TABLES, 'providers'].map((name) => `[[${name}]]`).join(', ')}`,
    );
  } else if (services.length === 0 && reading.problems.length === 0)
    complain(reading, 'models', 'offers nothing', 'at least one block');
  const packages = readPackages(table['packages'], reading);
  return {
    config: router && packages && { file, router, services, providers, packages },
    walletConfig,
    reading,
  };
}

/** Returns null if the section has problems. */
function readPackages(section: unknown, reading: ConfigReading): Config['packages'] | null {
  if (section !== undefined && !isTable(section))
    complain(reading, 'packages', `is ${show(section)}`, 'a section [packages]');
  return valuesOf(readTable(isTable(section) ? section : {}, 'packages', PACKAGES, reading), PACKAGES);
}

interface ReadRouter {
  readonly router: RouterConfig | null;
  readonly walletConfig: WalletConfig | null;
}

function readRouter(section: unknown, directory: string, reading: ConfigReading): ReadRouter {
  const nothing = { router: null, walletConfig: null };
  if (!isTable(section)) {
    complain(
      reading,
      'router',
      section === undefined ? 'is missing' : `is ${show(section)}`,
      'a section [router] with the url of the router',
    );
    return nothing;
  }
  const read = readTable(section, 'router', ROUTER_OPTIONS, reading);
  const walletConfig = isTable(section['siwx']) ? readWallet(read, directory, reading) : null;
  if (section['siwx'] === undefined && section['api_key'] === undefined)
    complain(
      reading,
      'router',
      'has no credential of the provider',
      '[router.siwx] with chain_id and keypair_file, or api_key',
    );
  const values = valuesOf(read, ROUTER_OPTIONS);
  if (!values) return { router: null, walletConfig };
  const { url, api_key: apiKey } = values;
  if (section['siwx'] === undefined && section['api_key'] !== undefined && apiKey === null)
    complain(reading, 'router.api_key', 'is empty', 'an API key, or [router.siwx] with a wallet');
  return {
    router: { url, domain: values['siwx.domain'] ?? new URL(url).host, wallet: walletConfig, apiKey },
    walletConfig,
  };
}

const API_PATH = '/api/v1';

/** The keys of `[router]` and `[router.siwx]`: the router's address and the provider's credential. */
export const ROUTER_OPTIONS = {
  url: option({
    takes: 'an http:// or https:// URL',
    meaning: `Address of the router. It may end with the path \`${API_PATH}\`, which clients use.`,
    read: (value) => {
      const { origin, path } = readUrl(
        value,
        'the address of the router, such as https://router.example.com',
        'router.api_key',
      );
      return `${origin}${path.endsWith(API_PATH) ? path.slice(0, -API_PATH.length) : path}`;
    },
  }),
  api_key: bearerKey(
    "API key of the provider's account at the router. Where `[router.siwx]` is there too, the wallet is used.",
  ),
  'siwx.chain_id': option<string | null>({
    takes: 'CAIP-2 id of a chain, such as `eip155:8453` or `solana:mainnet`',
    meaning: "Chain of the provider's wallet.",
    optional: { text: 'required in `[router.siwx]`', fallback: null },
    read: (value) => {
      const right =
        'a CAIP-2 id: eip155:<number>, such as eip155:8453, or solana:mainnet, solana:devnet, solana:testnet or solana:<genesis hash>';
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, right);
      try {
        return parseChainId(value).chainId;
      } catch (error) {
        if (!(error instanceof WalletError)) throw error;
        // The message doesn't repeat the text, because it may be a key in the wrong line.
        throw new WrongValue('is not a chain that a wallet can sign in on', right);
      }
    },
  }),
  'siwx.keypair_file': keypairFileOption('Keypair file of the wallet, as the command `keygen` writes it.'),
  'siwx.private_key': privateKeyOption('Secret key of the wallet, in place of `keypair_file`.'),
  'siwx.domain': option<string | null>({
    takes: 'host name, with its port where that is not the default one',
    meaning: 'Domain that the wallet signs in for. The router must accept it as its own.',
    optional: { text: 'host of `router.url`', fallback: null },
    read: (value) => {
      const right = 'a host name as browsers write it, such as router.example.com or localhost:8402';
      if (typeof value !== 'string' || value.length > 260) throw new WrongValue(`is ${show(value)}`, right);
      const fault = domainFault(value);
      if (fault !== null) throw new WrongValue(`is ${show(value)}: it ${fault}`, right);
      return value;
    },
  }),
};

const { 'siwx.chain_id': CHAIN, 'siwx.keypair_file': FILE, 'siwx.private_key': KEY } = ROUTER_OPTIONS;
const WALLET_OPTIONS = { 'siwx.chain_id': CHAIN, 'siwx.keypair_file': FILE, 'siwx.private_key': KEY };

function readWallet(
  read: ReturnType<typeof readTable>,
  directory: string,
  reading: ConfigReading,
): WalletConfig | null {
  const values = valuesOf(read, WALLET_OPTIONS);
  if (!values) return null;
  const { 'siwx.chain_id': chainId, 'siwx.keypair_file': file, 'siwx.private_key': privateKey } = values;
  if (chainId === null) complain(reading, 'router.siwx.chain_id', 'is missing', CHAIN.takes);
  if (file === null && privateKey === null)
    complain(reading, 'router.siwx.keypair_file', 'is missing', 'keypair_file, or private_key');
  if (file !== null && privateKey !== null)
    complain(reading, 'router.siwx.private_key', 'stands beside keypair_file', 'one of the two');
  else if (chainId !== null && file !== null) return { chainId, keypairFile: resolve(directory, file) };
  else if (chainId !== null && privateKey !== null) return { chainId, privateKey };
  return null;
}

function secretsOfTarget(target: ServiceTarget): readonly (string | null)[] {
  if (target.kind === 'http') return [target.apiKey];
  return Object.values(target.kind === 'sdk' ? target.secrets : target.env);
}

/**
 * Returns every value of a provider's file that a log must not show. All environment variables of tools count as
 * secrets.
 */
export function secretsOf({ router, services, providers }: ProviderConfig): readonly (string | null)[] {
  return [
    router.apiKey,
    router.wallet?.privateKey ?? null,
    ...services.flatMap(({ target }) => secretsOfTarget(target)),
    ...providers.map(({ apiKey }) => apiKey),
  ];
}
