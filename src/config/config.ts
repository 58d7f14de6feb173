import type { MicroUsd, Rates } from '#billing';
import type { AgentFacts, MediaFacts } from './primitive.ts';
import type { ModelFacts } from './model-facts.ts';

/**
 * The one configuration of a gateway process: read once at start by the CLI, frozen, passed as arguments. All
 * defaults are in `config-options.ts`.
 */
export interface Config {
  readonly mode: 'development' | 'production';
  readonly host: string;
  readonly port: number;
  /** Where the embedded database, the identity and the discovery files live. */
  readonly dataDir: string;
  /** postgres:// URL, or null for the embedded database. */
  readonly databaseUrl: string | null;
  /** redis:// URL, or null for in-process state. */
  readonly redisUrl: string | null;
  /** Secret of the admin API; made at first start when the configuration names none. */
  readonly adminKey: string | null;
  /** IP addresses and networks that the admin key is taken from; empty: everywhere. */
  readonly adminNetworks: readonly string[];
  /** Secret: 32 bytes as 64 hex digits that the gateway's keys are derived from; null keeps the seed in `dataDir`. */
  readonly identitySeed: string | null;
  /** Origin that the world reaches this gateway at, without a slash at its end; null where that is not known. */
  readonly publicUrl: string | null;
  /** More host names that MCP clients may reach this gateway by. */
  readonly allowedHosts: readonly string[];
  /** Origins of web pages that may call MCP. */
  readonly allowedOrigins: readonly string[];
  /** Origins whose pages browsers let call every endpoint; `*` is every origin. */
  readonly corsOrigins: readonly string[];
  /** IP addresses and networks of load balancers whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** OTLP/HTTP base endpoint for traces, or null. */
  readonly otlpEndpoint: string | null;
  /** Who may read `/metrics`: the holder of the admin key, or whoever reaches the gateway. */
  readonly metrics: 'admin' | 'open';
  readonly limits: LimitsConfig;
  readonly billing: BillingConfig;
  readonly upstream: UpstreamConfig;
  readonly mcp: McpConfig;
  readonly webhooks: WebhooksConfig;
  readonly tasks: TasksConfig;
  readonly signIn: SignInConfig;
  readonly oauth: OAuthConfig;
  readonly tunnel: TunnelConfig;
  readonly cluster: ClusterConfig;
  readonly payments: PaymentsConfig;
  /** Chains that the gateway can ask, by CAIP-2 id. */
  readonly chains: readonly ChainConfig[];
  readonly services: readonly ServiceConfig[];
}

export interface LimitsConfig {
  readonly requestsPerMinute: number;
  readonly burst: number;
  readonly developmentRequestsPerMinute: number;
  /** Of one network that callers without a credential come from. */
  readonly anonymousRequestsPerMinute: number;
  readonly tokensPerMinute: number;
  readonly chatBodyBytesMax: number;
  readonly bodyBytesMax: number;
  readonly messagesMax: number;
  readonly jsonDepthMax: number;
  readonly jsonKeysMax: number;
  /** Time a client has to send its whole request. */
  readonly requestTimeoutMs: number;
  /** Streams that one account listens on at one gateway. */
  readonly listensMax: number;
  /** Bytes of replies that are kept for repeats of one account's requests. */
  readonly keptRepliesBytesMax: number;
  /** Time that a client may take nothing of an answer that waits for it; then it counts as gone. */
  readonly clientStallMs: number;
  readonly drainOnShutdownMs: number;
}

export interface BillingConfig {
  readonly feeBps: number;
  /** After the client is gone, how long and how many bytes the upstream is read on for its usage. */
  readonly drainMs: number;
  readonly drainBytes: number;
  readonly sweepMs: number;
  /** Sign `x-receipt` on every non-stream answer, or only where a request asks for it. */
  readonly receipts: 'always' | 'on-request';
  /** Highest budget of a run whose client names none. */
  readonly runCostMax: MicroUsd;
}

export interface UpstreamConfig {
  /** Until the upstream's response head. */
  readonly headTimeoutMs: number;
  /** Longest silence inside a reply. */
  readonly idleTimeoutMs: number;
  /** Wall clock of a whole call; a lock lives this long plus the drain. */
  readonly callTimeoutMs: number;
  readonly attemptsMax: number;
  readonly replyBytesMax: number;
  /** Of all unfinished replies together. */
  readonly repliesBytesMax: number;
  readonly connectionsMax: number;
  /** How many times the usual price a call may cost whose consumer said nothing of it. */
  readonly priceSpreadMax: number;
  /** An offer that failed is passed over this long. */
  readonly cooldownMs: number;
}

export interface McpConfig {
  /** Sessions of one account. */
  readonly sessionsMax: number;
  /** Sessions in the memory of one gateway. */
  readonly sessionsInMemoryMax: number;
  /** A session that nobody uses for this long is over. */
  readonly sessionIdleMs: number;
}

export interface TasksConfig {
  /** How long after its last message a task may go on. */
  readonly ttlMs: number;
  /** How long a task is remembered after its end. */
  readonly retentionMs: number;
  /** Most tasks of one account that go on at once. */
  readonly liveMax: number;
  /** Longest pause between two looks at a task. */
  readonly lookMsMax: number;
}

export interface WebhooksConfig {
  /** Whether receivers may be on this machine and its networks, and without TLS. */
  readonly allowPrivate: boolean;
}

export interface SignInConfig {
  /**
   * Hosts, with a port where it is not the scheme's, that a sign-in message may be made for. Empty: wallets cannot
   * sign in.
   */
  readonly domains: readonly string[];
  /** Longest validity of a sign-in message. */
  readonly lifetimeMsMax: number;
  readonly skewMs: number;
  /** Sign-ins and keys that fail, from one address in a minute, before more are refused unseen. */
  readonly failuresPerMinute: number;
}

export interface OAuthConfig {
  /** Whose access tokens are taken, as it writes itself; null is nobody's. */
  readonly issuer: string | null;
  /** One more audience that a token may be for. */
  readonly audience: string | null;
  /** What clients are told to ask their token for. */
  readonly scopes: readonly string[];
  readonly requiredScope: string | null;
  /** null: from the issuer's metadata. */
  readonly jwksUrl: string | null;
}

export interface TunnelConfig {
  /** Public keys and account ids that may dial in; empty is everybody. */
  readonly providers: readonly string[];
  /** A proxy that says nothing this long is gone. */
  readonly silenceMs: number;
  /** How long the offers of a provider that went away stay listed, and calls for it may wait for its return. */
  readonly graceMs: number;
  readonly waitMs: number;
  readonly servicesMax: number;
  /** How long calls have to accept a price that jumped; 0 for never. */
  readonly priceNoticeMs: number;
  /** Proxies from one client network. */
  readonly connectionsPerAddressMax: number;
}

export interface ClusterConfig {
  /** Address that other gateways reach this one at, `https://host:port`; null for a gateway that stands alone. */
  readonly url: string | null;
  readonly host: string;
  readonly port: number;
  /** Secret that the gateways share; null derives it from the identity seed. */
  readonly secret: string | null;
}

/** Money over all chains. */
export interface PaymentsConfig {
  /** How long a request waits for the payment that came with it. */
  readonly waitMs: number;
  /** How long a wallet has to be bound before it is paid to. */
  readonly addressCooldownMs: number;
  /** Between two looks at what came in. */
  readonly watchMs: number;
  /** Between two comparisons of the books with the treasuries. */
  readonly compareMs: number;
}

export interface ChainConfig {
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly rpcUrl: string;
  /** null: no money goes over it, and it is only asked about contract wallets. */
  readonly payments: ChainPaymentsConfig | null;
}

/** How money is taken and paid out over one chain. */
export interface ChainPaymentsConfig {
  /** Where the key of the treasury is. The key itself is secret. */
  readonly treasury: { readonly keypairFile: string } | { readonly privateKey: string };
  /** Address of the token. */
  readonly asset: string;
  /** EIP-712 domain of the token; null on Solana. */
  readonly assetName: string | null;
  readonly assetVersion: string | null;
  /** `in-process`, or the URL of an x402 facilitator. */
  readonly facilitator: string;
  /** The least and the most of one payment. */
  readonly minTopup: MicroUsd;
  readonly topupMax: MicroUsd;
  /** The most that is credited in all while the chain may still undo it. */
  readonly unfinalMax: MicroUsd;
  /** Blocks after which a payment is credited. */
  readonly confirmations: number;
  /** Blocks that make it final; null: what the node calls finalized. */
  readonly finality: number | null;
  /** Payouts make token accounts on Solana for those who have none. */
  readonly opensAccounts: boolean;
  readonly withdrawalMin: MicroUsd;
  /** Of one account's balance, or of its earnings, within a day. */
  readonly withdrawalDailyMax: MicroUsd;
  readonly timeoutMs: number;
}

/**
 * What a provider offers, as its file and its registration declare it. Nothing here is secret or says where it runs.
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
  /** The most that one call costs, where it is priced by what it uses; else null. */
  readonly priceCap: MicroUsd | null;
}

export interface AgentService extends ServiceFields {
  readonly primitive: 'agent';
  /** The most that one message or task costs, where it is priced by what it uses; else null. */
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

/** Where a service runs, as only its own machine knows it. */
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
  /** How long a session lasts that nobody uses. */
  readonly sessionIdleMs: number;
  /** Whether clients may name directories of the machine that it runs on. */
  readonly roots: boolean;
}

/** One `[[models]]`, `[[tools]]`, `[[agents]]`, `[[images]]` or `[[videos]]` block, validated. */
export interface ServiceConfig {
  readonly service: Service;
  readonly target: Target;
}
