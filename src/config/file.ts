import { dirname } from 'node:path';
import { printable } from '#wire';
import { indexLines } from './lines.ts';
import { readChains } from './chain-blocks.ts';
import { BLOCK_TABLES, readBlocks } from './blocks/blocks.ts';
import { OPTIONS, type OptionKey, type OptionValues } from './options.ts';
import { ConfigError, nearest, show } from './problem.ts';
import { parseToml, readTomlFile } from './toml.ts';
import {
  complain,
  isTable,
  lookup,
  readOutside,
  readValue,
  unknownKey,
  type Environment,
  type Reading,
  type Table,
} from './reading.ts';
import { freeze } from './freeze.ts';
import type { ChainConfig, Config, ServiceConfig } from './config.ts';
import type { Option } from './option.ts';

export interface LoadOptions {
  /** Path of the TOML file; null for none. */
  readonly file: string | null;
  /** The file's text where it was read already; `file` then only names it in messages. */
  readonly text?: string;
  readonly env: Environment;
  readonly mode: Config['mode'];
  /** What flags of the command line say, by option key. */
  readonly overrides?: Readonly<Partial<Record<OptionKey, string | number | undefined>>>;
}

const BLOCKS_MAX = 10_000;
/** Tables of the file that are no sections of options. */
const BLOCKS: readonly string[] = [...BLOCK_TABLES, 'chains'];

/**
 * Reads the whole configuration: flags over environment over file over defaults. An empty variable counts as
 * absent. Throws ConfigError with everything that is wrong, not only the first thing. What the file says must be
 * right even where it is overridden.
 */
export function loadConfig(options: LoadOptions): Config {
  const text = options.text ?? (options.file === null ? '' : readTomlFile(options.file));
  const reading: Reading = { file: options.file, lineOf: indexLines(text), env: options.env, problems: [] };
  const table = parseToml(text, options.file);

  const values = readOptions(table, options, reading);
  const place = { commands: false, directory: dirname(options.file ?? '.') };
  const chains = readChains(table['chains'], place.directory, reading);
  const services = readBlocks(table, place, { max: BLOCKS_MAX, oneProvider: false }, reading);
  if (reading.problems.length > 0) throw new ConfigError(reading.problems);
  return freeze(toConfig(options.mode, values as OptionValues, chains, services));
}

/** All sections of options. Values that have problems are absent from the result. */
function readOptions(table: Table, options: LoadOptions, reading: Reading): Partial<Record<OptionKey, unknown>> {
  const keys = Object.keys(OPTIONS) as OptionKey[];
  const written = collect(table, keys, reading);
  const values: Partial<Record<OptionKey, unknown>> = {};
  for (const key of keys) {
    const option: Option<unknown> = OPTIONS[key];
    let value: unknown = option.fallback;
    if (written.has(key)) value = readValue(option, written.get(key), key, reading);
    const variable = option.env === null ? undefined : lookup(options.env, option.env);
    const flag = options.overrides?.[key];
    if (flag !== undefined)
      value = readOutside(
        option,
        flag,
        `--${key
          .replace(/^\w+\./, '')
          .replace(/^data_dir$/, 'data')
          .replaceAll('_', '-')}`,
        reading,
      );
    else if (variable !== undefined)
      value = readOutside(option, variable, `environment variable ${option.env}`, reading);
    values[key] = value;
  }
  return values;
}

/** What the file writes for the known keys of its sections; what is not known becomes a problem. */
function collect(table: Table, keys: readonly OptionKey[], reading: Reading): Map<OptionKey, unknown> {
  const known = new Set<string>(keys);
  const sections = [...new Set(keys.map((key) => key.split('.')[0]!))];
  const written = new Map<OptionKey, unknown>();
  for (const [section, content] of Object.entries(table)) {
    if (BLOCKS.includes(section)) continue;
    if (!sections.includes(section)) unknownSection(section, [...sections, ...BLOCKS], keys, reading);
    else if (!isTable(content)) complain(reading, section, `is ${show(content)}`, `a section: [${section}]`);
    else {
      const siblings = keys.filter((key) => key.startsWith(`${section}.`)).map((key) => key.slice(section.length + 1));
      for (const [key, value] of Object.entries(content)) {
        const path = `${section}.${key}`;
        if (known.has(path)) written.set(path as OptionKey, value);
        else unknownKey(path, key, siblings, reading);
      }
    }
  }
  return written;
}

function unknownSection(
  section: string,
  sections: readonly string[],
  keys: readonly OptionKey[],
  reading: Reading,
): void {
  const path = printable(section, 64);
  if (section === 'router')
    return complain(reading, path, 'is for the provider proxy', 'the blocks alone; the gateway does not dial a router');
  const home = keys.find((key) => key.split('.')[1] === section);
  if (home) return complain(reading, path, 'is not an option here', `put it below [${home.split('.')[0]}]`);
  const guess = nearest(section, sections);
  complain(reading, path, 'is not a section', guess ? `did you mean [${guess}]?` : `one of ${sections.join(', ')}`);
}

/**
 * In development also the loopback addresses of this gateway itself: in production a message signed for one of
 * those could be another gateway's.
 */
function signInDomains(mode: Config['mode'], values: OptionValues): readonly string[] {
  const domains = new Set(values['sign_in.domains']);
  const publicUrl = values['server.public_url'];
  if (publicUrl !== null) domains.add(new URL(publicUrl).host);
  if (mode === 'development')
    for (const host of ['localhost', '127.0.0.1', '[::1]']) domains.add(`${host}:${values['server.port']}`);
  return [...domains];
}

function toConfig(
  mode: Config['mode'],
  values: OptionValues,
  chains: readonly ChainConfig[],
  services: readonly ServiceConfig[],
): Config {
  return {
    mode,
    host: values['server.host'],
    port: values['server.port'],
    dataDir: values['server.data_dir'],
    databaseUrl: values['database.url'],
    redisUrl: values['redis.url'],
    adminKey: values['server.admin_key'],
    adminNetworks: values['server.admin_networks'],
    identitySeed: values['server.identity_seed'],
    publicUrl: values['server.public_url'],
    allowedHosts: values['server.allowed_hosts'],
    allowedOrigins: values['server.allowed_origins'],
    corsOrigins: values['server.cors_origins'],
    trustedProxies: values['server.trusted_proxies'],
    logLevel: values['server.log_level'],
    otlpEndpoint: values['telemetry.otlp_endpoint'],
    metrics: values['telemetry.metrics'] ?? (mode === 'development' ? 'open' : 'admin'),
    limits: {
      requestsPerMinute: values['limits.requests_per_minute'],
      burst: values['limits.burst'],
      developmentRequestsPerMinute: values['limits.development_requests_per_minute'],
      anonymousRequestsPerMinute: values['limits.anonymous_requests_per_minute'],
      tokensPerMinute: values['limits.tokens_per_minute'],
      chatBodyBytesMax: values['limits.chat_body_bytes_max'],
      bodyBytesMax: values['limits.body_bytes_max'],
      messagesMax: values['limits.messages_max'],
      jsonDepthMax: values['limits.json_depth_max'],
      jsonKeysMax: values['limits.json_keys_max'],
      requestTimeoutMs: values['limits.request_timeout_ms'],
      listensMax: values['limits.listens_max'],
      keptRepliesBytesMax: values['limits.kept_replies_bytes_max'],
      clientStallMs: values['limits.client_stall_ms'],
      drainOnShutdownMs: values['limits.drain_on_shutdown_ms'],
    },
    billing: {
      feeBps: values['billing.fee_bps'],
      drainMs: values['billing.drain_ms'],
      drainBytes: values['billing.drain_bytes'],
      sweepMs: values['billing.sweep_ms'],
      receipts: values['billing.receipts'],
      runCostMax: values['billing.run_cost_max'],
    },
    upstream: {
      headTimeoutMs: values['upstream.head_timeout_ms'],
      idleTimeoutMs: values['upstream.idle_timeout_ms'],
      callTimeoutMs: values['upstream.call_timeout_ms'],
      attemptsMax: values['upstream.attempts_max'],
      replyBytesMax: values['upstream.reply_bytes_max'],
      repliesBytesMax: values['upstream.replies_bytes_max'],
      connectionsMax: values['upstream.connections_max'],
      priceSpreadMax: values['upstream.price_spread_max'],
      cooldownMs: values['upstream.cooldown_ms'],
    },
    mcp: {
      sessionsMax: values['mcp.sessions_max'],
      sessionsInMemoryMax: values['mcp.sessions_in_memory_max'],
      sessionIdleMs: values['mcp.session_idle_ms'],
    },
    tasks: {
      ttlMs: values['tasks.ttl_ms'],
      retentionMs: values['tasks.retention_ms'],
      liveMax: values['tasks.live_max'],
      lookMsMax: values['tasks.look_ms_max'],
    },
    webhooks: { allowPrivate: values['webhooks.allow_private'] ?? mode === 'development' },
    signIn: {
      domains: signInDomains(mode, values),
      lifetimeMsMax: values['sign_in.lifetime_ms_max'],
      skewMs: values['sign_in.skew_ms'],
      failuresPerMinute: values['sign_in.failures_per_minute'],
    },
    oauth: {
      issuer: values['oauth.issuer'],
      audience: values['oauth.audience'],
      scopes: values['oauth.scopes'],
      requiredScope: values['oauth.required_scope'],
      jwksUrl: values['oauth.jwks_url'],
    },
    tunnel: {
      providers: values['tunnel.providers'],
      silenceMs: values['tunnel.silence_ms'],
      graceMs: values['tunnel.grace_ms'],
      waitMs: values['tunnel.wait_ms'],
      servicesMax: values['tunnel.services_max'],
      priceNoticeMs: values['tunnel.price_notice_ms'],
      connectionsPerAddressMax: values['tunnel.connections_per_address_max'],
    },
    cluster: {
      url: values['cluster.url'],
      host: values['cluster.host'],
      port: values['cluster.port'],
      secret: values['cluster.secret'],
    },
    payments: {
      waitMs: values['payments.wait_ms'],
      addressCooldownMs: values['payments.address_cooldown_s'] * 1_000,
      watchMs: values['payments.watch_ms'],
      compareMs: values['payments.compare_ms'],
    },
    chains,
    services,
  };
}
