import type { Rates } from '#billing';
import type { Primitive } from './call.ts';

/** The one configuration of a gateway process: read once at start by the CLI, frozen, passed as arguments. All defaults are in `config-options.ts`. */
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
  /** Secret: 32 bytes as 64 hex digits that the gateway's keys are derived from; null keeps the seed in `dataDir`. */
  readonly identitySeed: string | null;
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** OTLP/HTTP base endpoint for traces, or null. */
  readonly otlpEndpoint: string | null;
  readonly limits: LimitsConfig;
  readonly billing: BillingConfig;
  readonly upstream: UpstreamConfig;
  readonly services: readonly ServiceConfig[];
}

export interface LimitsConfig {
  readonly requestsPerMinute: number;
  readonly burst: number;
  readonly developmentRequestsPerMinute: number;
  readonly tokensPerMinute: number;
  readonly chatBodyBytesMax: number;
  readonly bodyBytesMax: number;
  readonly messagesMax: number;
  readonly jsonDepthMax: number;
  readonly jsonKeysMax: number;
  /** Time a client has to send its whole request. */
  readonly requestTimeoutMs: number;
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
  readonly connectionsMax: number;
  /** An offer that failed is passed over this long. */
  readonly cooldownMs: number;
}

/** One `[[models]]` block, validated. */
export interface ServiceConfig {
  readonly primitive: Primitive;
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  readonly rates: Rates;
  readonly contextLength: number;
  readonly maxOutputTokens: number | null;
  readonly inputModalities: readonly string[];
  readonly outputModalities: readonly string[];
  readonly upstreamModel: string;
  readonly apiBase: string;
  /** Secret; null when the upstream needs none. */
  readonly apiKey: string | null;
}
