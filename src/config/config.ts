import type { MicroUsd, Rates } from '#billing/amounts';
import type { ChainValues } from './chain-options.ts';
import type { AgentFacts, MediaFacts } from './primitive.ts';
import type { ModelFacts } from './model-facts.ts';
import type { AdmittedProviders } from './options/tunnel.ts';
import { isLoopback } from '#wire';
import type { OptionValues } from './options.ts';

/** The configuration of a gateway process. The CLI reads it, freezes it, and passes it as an argument. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

export type Mode = 'development' | 'production';
export type LimitsConfig = Config['limits'];
export type SignInConfig = Config['signIn'];
export type OAuthConfig = Config['oauth'];
export type TunnelConfig = Config['tunnel'];
export type ClusterConfig = Config['cluster'];

/**
 * Combines the sections of options. The options of `server` and `telemetry` and the URLs of the stores become top-level
 * fields.
 */
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
    tunnel: { ...sections.tunnel, providers: admitted(mode, values) },
    chains,
    services,
  };
}

/** A development gateway that only this machine can reach admits every provider, unless its file says otherwise. */
const admitted = (mode: Mode, { tunnel, server }: OptionValues): AdmittedProviders =>
  tunnel.providers ?? (mode === 'development' && isLoopback(server.host) ? 'anyone' : null);

/**
 * The domains for sign-in. In development they include this gateway's loopback addresses. In production they do not,
 * because a message that was signed for a loopback address could be meant for another gateway.
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
  /** null: no payments over this chain. It is used only to verify contract wallets. */
  readonly payments: ChainPaymentsConfig | null;
}

/** The path of a treasury's key, or the key itself, which is secret. */
export type KeyPlace = { readonly keypairFile: string } | { readonly privateKey: string };

/** The terms of deposits and withdrawals over one chain. */
export interface ChainPaymentsConfig extends Omit<
  ChainValues,
  'network' | 'rpcUrl' | 'privateKey' | 'keypairFile' | 'previousPrivateKey' | 'previousKeypairFile' | 'asset'
> {
  readonly treasury: KeyPlace;
  /** The key of the previous treasury, while it hands over to this one. null without one. */
  readonly previous: KeyPlace | null;
  /** Address of the token. */
  readonly asset: string;
}

/**
 * An offer of a provider, as its file and its registration declare it. It has no secrets, and does not say where the
 * service runs.
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
   * Rates of parts with their own price. The key is the name of a tool, an image tier, or a video resolution, with
   * `+audio` for videos with sound.
   */
  readonly variants: Readonly<Record<string, Rates>>;
}

export interface ModelService extends ServiceFields {
  readonly primitive: 'model';
  readonly model: ModelFacts;
}

export interface ToolService extends ServiceFields {
  readonly primitive: 'tool';
  /** The most that one call costs, if it is priced by use. Otherwise null. */
  readonly priceCap: MicroUsd | null;
}

export interface AgentService extends ServiceFields {
  readonly primitive: 'agent';
  /** The most that one message or task costs, if it is priced by use. Otherwise null. */
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

/** The place where a service runs. Only the machine that reads the file knows it. */
export type Target = HttpTarget | CommandTarget;

export interface HttpTarget {
  readonly kind: 'http';
  /** The API base of models and media, the MCP endpoint of a tool, or the address of an agent. No trailing slash. */
  readonly url: string;
  /** A secret, sent as a bearer token. null if the upstream needs none. */
  readonly apiKey: string | null;
}

/** An MCP server that speaks over its standard input and output. */
export interface CommandTarget {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
  /** May contain secret values. */
  readonly env: Readonly<Record<string, string>>;
  /** Working directory. null: that of the proxy. */
  readonly cwd: string | null;
  /** Whether one process serves all clients. Otherwise each session has its own process. */
  readonly shared: boolean;
  readonly sessionsMax: number;
  /** How long an unused session lasts. */
  readonly sessionIdleMs: number;
  /** Whether clients may name directories of the machine on which it runs. */
  readonly roots: boolean;
}

/** One `[[models]]`, `[[tools]]`, `[[agents]]`, `[[images]]` or `[[videos]]` block, validated. */
export interface ServiceConfig {
  readonly service: Service;
  readonly target: Target;
}
