import type { MicroUsd, Rates } from '#billing/amounts';
import type { ChainValues } from './chain-options.ts';
import type { AgentFacts, MediaFacts } from './primitive.ts';
import type { ModelFacts } from './model-facts.ts';
import type { OptionValues } from './options.ts';

/** The one configuration of a gateway process: read once at start by the CLI, frozen, passed as arguments. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

export type Mode = 'development' | 'production';
export type LimitsConfig = Config['limits'];
export type SignInConfig = Config['signIn'];
export type OAuthConfig = Config['oauth'];
export type TunnelConfig = Config['tunnel'];
export type ClusterConfig = Config['cluster'];

/** Puts the sections of options together. Those of the process itself have no section in it. */
export function toConfig(
  mode: Mode,
  values: OptionValues,
  chains: readonly ChainConfig[],
  services: readonly ServiceConfig[],
) {
  const { server, database, redis, telemetry, ...sections } = values;
  return {
    mode,
    ...server,
    databaseUrl: database.url,
    redisUrl: redis.url,
    ...telemetry,
    ...sections,
    signIn: { ...sections.signIn, domains: signInDomains(mode, values) },
    chains,
    services,
  };
}

/**
 * In development also the loopback addresses of this gateway itself: in production a message signed for one of
 * those could be another gateway's.
 */
function signInDomains(mode: Mode, { signIn, server: { publicUrl, port } }: OptionValues): readonly string[] {
  const domains = new Set(signIn.domains);
  if (publicUrl !== null) domains.add(new URL(publicUrl).host);
  if (mode === 'development') for (const host of ['localhost', '127.0.0.1', '[::1]']) domains.add(`${host}:${port}`);
  return [...domains];
}

export interface ChainConfig {
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly rpcUrl: string;
  /** null: no money goes over it, and it is only asked about contract wallets. */
  readonly payments: ChainPaymentsConfig | null;
}

/** The place of a treasury's key, or the key itself, which is secret. */
export type KeyPlace = { readonly keypairFile: string } | { readonly privateKey: string };

/** How money is taken and paid out over one chain. */
export interface ChainPaymentsConfig extends Omit<
  ChainValues,
  'network' | 'rpcUrl' | 'privateKey' | 'keypairFile' | 'previousPrivateKey' | 'previousKeypairFile' | 'asset'
> {
  readonly treasury: KeyPlace;
  /** Of the treasury that hands over to this one; null where none does. */
  readonly previous: KeyPlace | null;
  /** Address of the token. */
  readonly asset: string;
}

/**
 * An offer of a provider, as its file and its registration declare it. Nothing here is secret or says where it runs.
 */
export type Service = ModelService | ToolService | AgentService | ImageService | VideoService;

interface ServiceFields {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  /** May be empty. */
  readonly description: string;
  readonly rates: Rates;
  /**
   * Rates of parts that have their own: a tool by its name, an image tier, a video resolution (with `+audio` for
   * the price with sound).
   */
  readonly variants: Readonly<Record<string, Rates>>;
}

export interface ModelService extends ServiceFields {
  readonly primitive: 'model';
  readonly model: ModelFacts;
}

export interface ToolService extends ServiceFields {
  readonly primitive: 'tool';
  /** The most that one call costs, where it is priced by its use; else null. */
  readonly priceCap: MicroUsd | null;
}

export interface AgentService extends ServiceFields {
  readonly primitive: 'agent';
  /** The most that one message or task costs, where it is priced by its use; else null. */
  readonly priceCap: MicroUsd | null;
  readonly agent: AgentFacts;
}

export interface ImageService extends ServiceFields {
  readonly primitive: 'image';
  readonly media: MediaFacts;
}

export interface VideoService extends ServiceFields {
  readonly primitive: 'video';
  readonly media: MediaFacts;
}

/** The place where a service runs, which only its own machine knows. */
export type Target = HttpTarget | CommandTarget;

export interface HttpTarget {
  readonly kind: 'http';
  /**
   * Without a trailing slash: the API base of models and media, the MCP endpoint of a tool, the address of an agent.
   */
  readonly url: string;
  /** Secret, sent as a bearer token; null when the upstream needs none. */
  readonly apiKey: string | null;
}

/** An MCP server that speaks over its standard input and output. */
export interface CommandTarget {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
  /** Secret values among them. */
  readonly env: Readonly<Record<string, string>>;
  /** Working directory; null is that of the proxy. */
  readonly cwd: string | null;
  /** Whether one process serves all clients; else each session of a client has one of its own. */
  readonly shared: boolean;
  readonly sessionsMax: number;
  /** How long an unused session lasts. */
  readonly sessionIdleMs: number;
  /** Whether clients may name directories of the machine that it runs on. */
  readonly roots: boolean;
}

/** One `[[models]]`, `[[tools]]`, `[[agents]]`, `[[images]]` or `[[videos]]` block, validated. */
export interface ServiceConfig {
  readonly service: Service;
  readonly target: Target;
}
