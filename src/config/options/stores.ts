import { choice, optionalText, urlFault, whole } from '../option.ts';
import { otlpHeadersFault } from '../otlp-headers.ts';
import { listenHost } from './server.ts';

/** `[cluster]`: other gateways of the same database. */
export const CLUSTER = {
  url: optionalText({
    env: 'TOLLGATE_CLUSTER_URL',
    absent: 'no other gateway',
    takes: 'https://host:port',
    meaning:
      'Address under which the other gateways of the same database reach `cluster.host` and `cluster.port` of this one.',
    fault: (value) => urlFault(value, ['https:']) ?? peerFault(new URL(value)),
    normal: (value) => value.replace(/\/$/, ''),
  }),
  host: listenHost({
    env: 'TOLLGATE_CLUSTER_HOST',
    meaning: 'Address to listen on for other gateways. Only gateways that know the secret can connect.',
  }),
  port: whole({
    env: 'TOLLGATE_CLUSTER_PORT',
    min: 0,
    max: 65_535,
    default: 8403,
    meaning: 'Port to listen on for other gateways. 0 takes a free one.',
  }),
  secret: optionalText({
    env: 'TOLLGATE_CLUSTER_SECRET',
    secret: true,
    absent: 'derived from the identity seed',
    takes: 'text of 32 to 512 printable ASCII characters without spaces',
    meaning: 'Secret with which the gateways of one database authenticate to each other.',
    fault: (value) => (/^[!-~]{32,512}$/.test(value) ? null : 'is too short, too long, or contains spaces'),
  }),
};

/** Other gateways use only the host and the port of the address. */
function peerFault({ username, password, pathname, search, hash, hostname }: URL): string | null {
  if (username !== '' || password !== '') return 'has a user or a password, which other gateways do not send';
  if (pathname !== '/' || search !== '' || hash !== '') return 'has more than a host and a port';
  if (hostname === '0.0.0.0' || hostname === '[::]')
    return 'names all addresses of a machine, and other gateways need one of them';
  return null;
}

/** `[database]`: the database. */
export const DATABASE = {
  url: optionalText({
    env: 'DATABASE_URL',
    secret: true,
    absent: 'embedded database in `data_dir`',
    takes: 'a postgres:// URL',
    meaning: 'PostgreSQL database for the ledger.',
    fault: (value) => urlFault(value, ['postgres:', 'postgresql:']),
  }),
};

/** `[redis]`: shared rate counters. */
export const REDIS = {
  url: optionalText({
    env: 'REDIS_URL',
    secret: true,
    absent: 'counters are kept in the process',
    takes: 'a redis:// or rediss:// URL',
    meaning: 'Redis server through which gateways share rate counters.',
    fault: (value) => urlFault(value, ['redis:', 'rediss:']),
  }),
};

/** `[telemetry]`: traces, metrics and logs. */
export const TELEMETRY = {
  otlp_endpoint: optionalText({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    absent: 'no traces and logs are sent',
    takes: 'an http:// or https:// URL',
    meaning: 'OTLP/HTTP base address to which traces are sent, and logs too with `telemetry.logs_exporter`.',
    fault: (value) => urlFault(value, ['http:', 'https:']),
    normal: (value) => value.replace(/\/$/, ''),
  }),
  otlp_headers: optionalText({
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    secret: true,
    absent: 'none',
    takes: 'name=value pairs with commas between, values percent-encoded',
    meaning: 'Headers for the collector, such as `authorization=Bearer%20…`. Spaces need no encoding.',
    fault: otlpHeadersFault,
  }),
  logs_exporter: choice({
    env: 'OTEL_LOGS_EXPORTER',
    of: ['none', 'otlp'],
    default: 'none',
    // The variable applies to all programs of a machine, so an unknown word is not an error.
    fromText: (text) => (text.split(',').some((one) => one.trim() === 'otlp') ? 'otlp' : 'none'),
    meaning:
      'With `otlp`, log lines are also sent to `telemetry.otlp_endpoint`. The environment variable may be a list that contains `otlp`. Any other value of it counts as `none`, and without that address it is ignored.',
  }),
  metrics: choice({
    of: ['admin', 'open'],
    default: 'admin',
    inDevelopment: 'open',
    meaning: 'Who may read `/metrics`: requests with the admin key, or everybody who reaches the gateway.',
  }),
};
