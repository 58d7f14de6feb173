import { isIP } from 'node:net';
import { isIssuerUrl } from './auth/oauth/issuer-url.ts';
import type { MicroUsd } from '#billing';
import { CALL_PRICE, readPrice } from './config-blocks/price-option.ts';
import { choice, option, optionalText, text, textList, urlFault, whole, type Option, type ValueOf } from './config-option.ts';
import { show, WrongValue } from './config-problem.ts';
import { domainFault, hostNameFault, originFault } from './config-domain.ts';
import { PAYMENT_OPTIONS } from './config-payment-options.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const SEED = /^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43})$/;

function networkIsValid(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** RFC 6749. Scopes stand in quotes in a header, which these characters cannot end. */
const SCOPE = /^[!#-[\]-~]{1,128}$/;
const scopeFault = (value: string) => (SCOPE.test(value) ? null : 'is no scope: printable ASCII without spaces, quotes and backslashes');

const ISSUER_URL = 'https:// URL, or http:// on this machine';
const issuerUrlFault = (value: string) => (isIssuerUrl(value) ? null : `is not an ${ISSUER_URL}, without a user and a fragment`);

/** A seed in any accepted form as 64 lower-case hex digits. */
const seedHex = (seed: string) => (seed.length === 64 ? seed.toLowerCase() : Buffer.from(seed, 'base64').toString('hex'));

/** Every option outside `[[models]]` by its `section.key`, with its default. docs/configuration.md repeats this table and a test compares them. */
export const OPTIONS = {
  'server.host': text({
    env: 'HOST',
    default: '127.0.0.1',
    takes: 'host name or IP address',
    meaning: 'Address to listen on. `0.0.0.0` or `::` opens the gateway to the network.',
    fault: (value) => (/^[A-Za-z0-9.:%_-]{1,255}$/.test(value) ? null : 'is no host name or IP address'),
  }),
  'server.port': whole({ env: 'PORT', min: 0, max: 65_535, default: 8402, meaning: 'Port to listen on; 0 takes a free one.' }),
  'server.data_dir': text({
    env: 'TOLLGATE_DATA',
    default: '.tollgate',
    takes: 'path of a directory',
    meaning: 'Where the embedded database and the identity live; made when missing. A relative path starts at the working directory.',
    fault: (value) => (value === '' ? 'is empty' : value.includes('\0') ? 'contains a NUL character' : null),
  }),
  'server.log_level': choice({
    env: 'TOLLGATE_LOG_LEVEL',
    of: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    meaning: 'Least severity that is logged.',
  }),
  'server.admin_key': optionalText({
    env: 'TOLLGATE_ADMIN_KEY',
    secret: true,
    absent: 'made at first start',
    takes: 'text of 16 to 512 printable ASCII characters without spaces',
    meaning: 'Secret of the admin API.',
    fault: (value) => (/^[!-~]{16,512}$/.test(value) ? null : 'is too short, too long, or holds characters that a header cannot carry'),
  }),
  'server.identity_seed': optionalText({
    env: 'TOLLGATE_IDENTITY_SEED',
    secret: true,
    absent: 'made at first start, in `data_dir`',
    takes: '32 bytes as 64 hex digits or as base64',
    meaning: 'Seed of the receipt-signing key and the provider ids. Gateways that share a database must share it.',
    fault: (value) => (SEED.test(value) ? null : 'is not 32 bytes in hex or base64'),
    normal: seedHex,
  }),
  'server.public_url': optionalText({
    env: 'TOLLGATE_PUBLIC_URL',
    secret: false,
    absent: 'not known',
    takes: 'an http:// or https:// URL without a path',
    meaning: 'Address that the world reaches this gateway at. Its host is a domain to sign in for.',
    fault: (value) =>
      urlFault(value, ['http:', 'https:']) ?? (URL.parse(value)!.origin === value.replace(/\/$/, '') ? null : 'has more than an origin'),
    normal: (value) => value.replace(/\/$/, ''),
  }),

  'server.trusted_proxies': textList({
    env: 'TOLLGATE_TRUSTED_PROXIES',
    takes: 'list of IP addresses and networks in CIDR form',
    meaning:
      'Load balancers in front of this gateway, whose `X-Forwarded-For` says where a client really is. Failed sign-ins are counted by that address.',
    fault: (value) => (networkIsValid(value) ? null : 'is no IP address and no network such as 10.0.0.0/8'),
    max: 100,
  }),
  'server.allowed_hosts': textList({
    env: 'TOLLGATE_ALLOWED_HOSTS',
    takes: 'list of host names and IP addresses without ports',
    meaning:
      'More names that MCP clients may reach this gateway by, besides those of this machine, `server.host`, `server.public_url` and `sign_in.domains`.',
    fault: hostNameFault,
    max: 100,
  }),
  'server.allowed_origins': textList({
    env: 'TOLLGATE_ALLOWED_ORIGINS',
    takes: 'list of origins, such as `https://app.example`, or `null`',
    meaning: "Web pages that may call MCP here besides the gateway's own. A gateway that listens on loopback takes all of this machine's.",
    fault: originFault,
    max: 100,
  }),

  'sign_in.domains': textList({
    env: 'TOLLGATE_SIGN_IN_DOMAINS',
    takes: 'list of host names, each with its port where that is not the default one',
    meaning:
      'Domains that a wallet may sign in for, besides the host of `server.public_url`. With neither, wallets cannot sign in; `npm start` adds its own loopback addresses.',
    fault: domainFault,
    max: 100,
  }),
  'sign_in.lifetime_ms_max': whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: HOUR_MS,
    meaning: 'Longest time that a sign-in message may be valid.',
  }),
  'sign_in.skew_ms': whole({ min: 0, max: 5 * MINUTE_MS, default: 30_000, meaning: "How far a wallet's clock may be from the gateway's." }),
  'sign_in.failures_per_minute': whole({
    min: 1,
    max: 10_000_000,
    default: 120,
    meaning: 'Keys and sign-ins that may fail from one address in a minute, before more that are not known to be good are refused unseen.',
  }),

  'oauth.issuer': optionalText({
    env: 'TOLLGATE_OAUTH_ISSUER',
    secret: false,
    absent: 'none',
    takes: ISSUER_URL,
    meaning: 'Authorization server whose access tokens are taken in place of an API key: its `issuer`, letter by letter.',
    fault: (value) => issuerUrlFault(value) ?? (new URL(value).search === '' ? null : 'has a query'),
  }),
  'oauth.audience': optionalText({
    env: 'TOLLGATE_OAUTH_AUDIENCE',
    secret: false,
    absent: 'none',
    takes: 'text of 1 to 512 printable ASCII characters without spaces',
    meaning:
      'One more audience that a token may be for. Those for `server.public_url` or a host of `sign_in.domains`, alone or with the path of an MCP endpoint, are always taken.',
    fault: (value) => (/^[!-~]{1,512}$/.test(value) ? null : 'is too long, or holds spaces'),
  }),
  'oauth.scopes': textList({
    takes: 'list of scopes',
    meaning: 'What clients are told to ask their token for.',
    fault: scopeFault,
    max: 100,
  }),
  'oauth.required_scope': optionalText({
    secret: false,
    absent: 'none',
    takes: 'one scope',
    meaning: 'Scope that a token must have.',
    fault: scopeFault,
  }),
  'oauth.jwks_url': optionalText({
    secret: false,
    absent: "from the issuer's metadata",
    takes: ISSUER_URL,
    meaning: 'Where the keys of the issuer are.',
    fault: issuerUrlFault,
  }),

  'tunnel.providers': textList({
    takes: 'list of public keys or account ids',
    meaning: 'Who may dial in as a provider. Empty: whoever signs in.',
    fault: (value) => (/^[!-~]{1,200}$/.test(value) ? null : 'is no public key and no account id'),
    max: 10_000,
  }),
  'tunnel.silence_ms': whole({
    min: 1_000,
    max: HOUR_MS,
    default: 15_000,
    meaning: "How long a provider's proxy may be silent before it counts as gone.",
  }),
  'tunnel.grace_ms': whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long the services of a provider that went away stay listed. Other providers are preferred meanwhile.',
  }),
  'tunnel.wait_ms': whole({
    min: 0,
    max: MINUTE_MS,
    default: 3_000,
    meaning: 'How long a call that nobody else can serve waits for its provider to dial in again.',
  }),
  'tunnel.services_max': whole({ min: 1, max: 10_000, default: 1_000, meaning: 'Most services of one provider.' }),

  'tunnel.connections_per_address_max': whole({
    min: 1,
    max: 10_000,
    default: 1_000,
    meaning: 'Most proxies from one IPv4 address or IPv6 /64 network, so that one client cannot take the places of all.',
  }),

  'cluster.url': optionalText({
    env: 'TOLLGATE_CLUSTER_URL',
    secret: false,
    absent: 'stands alone',
    takes: 'https://host:port',
    meaning: "Address that the other gateways of the same database reach this one's `cluster.host` and `cluster.port` at.",
    fault: (value) => urlFault(value, ['https:']),
    normal: (value) => value.replace(/\/$/, ''),
  }),
  'cluster.host': text({
    default: '127.0.0.1',
    takes: 'host name or IP address',
    meaning: 'Address to listen on for other gateways. Only those that know the secret can connect.',
    fault: (value) => (/^[A-Za-z0-9.:%_-]{1,255}$/.test(value) ? null : 'is no host name or IP address'),
  }),
  'cluster.port': whole({
    env: 'TOLLGATE_CLUSTER_PORT',
    min: 0,
    max: 65_535,
    default: 8403,
    meaning: 'Port to listen on for other gateways; 0 takes a free one.',
  }),
  'cluster.secret': optionalText({
    env: 'TOLLGATE_CLUSTER_SECRET',
    secret: true,
    absent: 'derived from the identity seed',
    takes: 'text of 32 to 512 printable ASCII characters without spaces',
    meaning: 'Secret that the gateways of one database prove themselves to each other with.',
    fault: (value) => (/^[!-~]{32,512}$/.test(value) ? null : 'is too short, too long, or holds spaces'),
  }),

  'database.url': optionalText({
    env: 'DATABASE_URL',
    secret: true,
    absent: 'embedded database in `data_dir`',
    takes: 'a postgres:// URL',
    meaning: 'PostgreSQL to keep the ledger in.',
    fault: (value) => urlFault(value, ['postgres:', 'postgresql:']),
  }),
  'redis.url': optionalText({
    env: 'REDIS_URL',
    secret: true,
    absent: 'in the process',
    takes: 'a redis:// or rediss:// URL',
    meaning: 'Redis to share rate counters through.',
    fault: (value) => urlFault(value, ['redis:', 'rediss:']),
  }),
  'telemetry.otlp_endpoint': optionalText({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    secret: false,
    absent: 'no traces',
    takes: 'an http:// or https:// URL',
    meaning: 'OTLP/HTTP base address that traces are sent to.',
    fault: (value) => urlFault(value, ['http:', 'https:']),
    normal: (value) => value.replace(/\/$/, ''),
  }),

  'limits.requests_per_minute': whole({ min: 1, max: 10_000_000, default: 60, meaning: 'Steady rate of requests of one API key.' }),
  'limits.burst': whole({ min: 0, max: 10_000_000, default: 20, meaning: 'Requests that a key may send at once on top of the steady rate.' }),
  'limits.development_requests_per_minute': whole({
    min: 1,
    max: 10_000_000,
    default: 6_000,
    meaning: 'Steady rate of requests of a development key.',
  }),
  'limits.anonymous_requests_per_minute': whole({ min: 1, max: 10_000_000, default: 30, meaning: 'Steady rate of strangers from one network.' }),
  'limits.tokens_per_minute': whole({ min: 1, max: 1e12, default: 10_000_000, meaning: 'Tokens of one API key per minute, prompt and completion.' }),
  'limits.chat_body_bytes_max': whole({ min: KIB, max: 256 * MIB, default: 10 * MIB, meaning: 'Largest body of a chat request.' }),
  'limits.body_bytes_max': whole({ min: KIB, max: 256 * MIB, default: MIB, meaning: 'Largest body of any other request.' }),
  'limits.messages_max': whole({ min: 1, max: 100_000, default: 2_048, meaning: 'Most messages of one chat request.' }),
  'limits.json_depth_max': whole({ min: 8, max: 512, default: 64, meaning: 'Deepest nesting of a JSON body.' }),
  'limits.json_keys_max': whole({ min: 100, max: 1_000_000, default: 10_000, meaning: 'Most keys of a JSON body.' }),
  'limits.request_timeout_ms': whole({ min: 100, max: HOUR_MS, default: MINUTE_MS, meaning: 'Time that a client has to send its whole request.' }),
  'limits.client_stall_ms': whole({
    min: 100,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'How long a client may take nothing of an answer that waits for it; then it counts as gone.',
  }),
  'limits.drain_on_shutdown_ms': whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'Time that running calls have to finish when the gateway stops.',
  }),

  'billing.fee_bps': whole({ min: 0, max: 10_000, default: 0, meaning: "Operator's fee in basis points of what a call costs; 100 is one percent." }),
  'billing.drain_ms': whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long a provider is read on for its usage after the client is gone.',
  }),
  'billing.drain_bytes': whole({
    min: 0,
    max: 1024 * MIB,
    default: 16 * MIB,
    meaning: 'How many bytes a provider is read on for its usage after the client is gone.',
  }),
  'billing.sweep_ms': whole({ min: 50, max: HOUR_MS, default: 10_000, meaning: 'Time between two searches for locks that have expired.' }),
  'billing.receipts': choice({
    of: ['always', 'on-request'],
    default: 'on-request',
    meaning: 'Sign a receipt into every answer that is not streamed, or only where the request asks for one with `x-receipt: 1`.',
  }),
  'billing.run_cost_max': option<MicroUsd>({
    takes: 'USD',
    meaning:
      'The most that a chat request costs whose model calls tools through the gateway, where the request has no `max_cost`: what is locked for all of its calls.',
    optional: { text: '1', fallback: 1_000_000n },
    read: (value) => readPrice(value, CALL_PRICE) / 1_000_000n,
  }),

  'mcp.sessions_max': whole({
    min: 1,
    max: 100_000,
    default: 100,
    meaning: 'Most sessions of one account. One more ends the one that was not used for longest.',
  }),
  'mcp.sessions_in_memory_max': whole({
    min: 1,
    max: 1_000_000,
    default: 20_000,
    meaning: 'Most sessions that one gateway keeps in memory. Others wait in the database until they are used again.',
  }),
  'mcp.session_idle_ms': whole({
    min: 10_000,
    max: 24 * HOUR_MS,
    default: 30 * MINUTE_MS,
    meaning: 'How long a session lasts that nobody uses.',
  }),
  'mcp.listens_max': whole({ min: 1, max: 10_000, default: 32, meaning: 'Most streams that the clients of one account listen on at one gateway.' }),

  'tasks.ttl_ms': whole({
    min: 1_000,
    max: 30 * 24 * HOUR_MS,
    default: 24 * HOUR_MS,
    meaning: 'How long after its last message a task may go on. What is locked for it then goes back, and it is free.',
  }),
  'tasks.retention_ms': whole({
    min: 1_000,
    max: 365 * 24 * HOUR_MS,
    default: 7 * 24 * HOUR_MS,
    meaning: 'How long a task can be asked for after its end.',
  }),
  'tasks.look_ms_max': whole({
    min: 1_000,
    max: HOUR_MS,
    default: MINUTE_MS,
    meaning: 'Longest pause between two looks at a task whose provider tells nothing of it.',
  }),

  'webhooks.allow_private': option({
    takes: '`true` or `false`',
    optional: { text: '`false`; `true` in development', fallback: null },
    meaning:
      'Whether clients may have tasks told to http:// addresses, to this machine and to its networks. Else only to https:// on the public internet.',
    read: (value): boolean | null => {
      if (typeof value !== 'boolean') throw new WrongValue(`is ${show(value)}`, 'true or false');
      return value;
    },
  }),

  'upstream.head_timeout_ms': whole({
    min: 100,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning: 'Longest wait for the head of a reply. An answer that is not streamed has its head only when the provider has finished.',
  }),
  'upstream.idle_timeout_ms': whole({ min: 100, max: HOUR_MS, default: 2 * MINUTE_MS, meaning: 'Longest silence inside a reply.' }),
  'upstream.call_timeout_ms': whole({
    min: 100,
    max: 24 * HOUR_MS,
    default: 10 * MINUTE_MS,
    meaning: 'Longest duration of a whole call, all attempts together.',
  }),
  'upstream.attempts_max': whole({ min: 1, max: 3, default: 3, meaning: 'Most providers that one call is tried at.' }),
  'upstream.reply_bytes_max': whole({ min: KIB, max: 1024 * MIB, default: 64 * MIB, meaning: 'Largest reply of a provider.' }),
  'upstream.connections_max': whole({ min: 1, max: 65_535, default: 1_024, meaning: 'Most connections to one provider address.' }),
  'upstream.price_spread_max': whole({
    min: 1,
    max: 1_000_000,
    default: 10,
    meaning:
      'How many times as dear as the operator’s own offer, or as the first choice, another provider of a model or a tool may be for calls that name no provider and no `max_price`.',
  }),
  'upstream.cooldown_ms': whole({ min: 0, max: HOUR_MS, default: 30_000, meaning: 'How long an offer that failed is passed over.' }),

  ...PAYMENT_OPTIONS,
} as const satisfies Record<`${string}.${string}`, Option<unknown>>;

export type OptionKey = keyof typeof OPTIONS;

/** The values of all options by their keys. */
export type OptionValues = { readonly [K in OptionKey]: ValueOf<(typeof OPTIONS)[K]> };
