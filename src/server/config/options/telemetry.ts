import { choice, commaSeparated, optionalText, urlFault, whole, HOUR_MS, openToStrangers } from '../option.ts';

/* What a gateway reports: traces and logs, posts about trouble, and figures of its calls. */

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
    values: ['none', 'otlp'],
    default: 'none',
    // The variable applies to all programs of a machine, so an unknown word is not an error.
    fromText: (text) => (text.split(',').some((one) => one.trim() === 'otlp') ? 'otlp' : 'none'),
    meaning:
      'With `otlp`, log lines are also sent to `telemetry.otlp_endpoint`. The environment variable may be a list that contains `otlp`. Any other value of it counts as `none`, and without that address it is ignored.',
  }),
  metrics: choice({
    values: ['admin', 'open'],
    default: 'admin',
    inDevelopment: 'open',
    meaning:
      'Who may read `/metrics`: requests with the admin key or `telemetry.metrics_key`, or everybody who reaches the gateway.',
  }),
  metrics_key: optionalText({
    env: 'TOLLGATE_METRICS_KEY',
    secret: true,
    absent: 'only keys of administrators read `/metrics`',
    takes: 'text of 32 to 512 printable ASCII characters without spaces',
    meaning:
      'A secret that reads `/metrics` and nothing else, for Prometheus. `server.admin_networks` does not limit it.',
    fault: (value) => (/^[!-~]{32,512}$/.test(value) ? null : 'is too short, too long, or contains spaces'),
  }),
};

const PAIR = /^[\w-]+ *=(?:[ -$&-+\x2d-~]|%[0-9A-Fa-f]{2})*$/;
/** A valid value of an HTTP header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers of the body and the connection, which the exporter sets itself. With other values every post would fail. */
const OWN: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/** Returns the fault of the text of `OTEL_EXPORTER_OTLP_HEADERS`. null for a valid text. */
function otlpHeadersFault(text: string): string | null {
  if (!commaSeparated(text).every((pair) => PAIR.test(pair))) return 'is not a list of headers';
  try {
    const pairs = otlpHeaderPairs(text);
    const own = pairs.find(([name]) => OWN.has(name));
    if (own !== undefined) return `names ${own[0]}, which each post has of its own`;
    return pairs.every(([, value]) => VALUE.test(value)) ? null : 'holds characters that no header may have';
  } catch {
    return 'has a value whose percent-encoding is not UTF-8';
  }
}

/**
 * The headers, with their names in lower case. `text` must be valid, or null without headers. Spaces around a pair and
 * extra commas are ignored, as by OpenTelemetry's SDKs.
 */
export const otlpHeaderPairs = (text: string | null): readonly (readonly [name: string, value: string])[] =>
  commaSeparated(text ?? '').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())];
  });

export const ALERTS = {
  url: optionalText({
    env: 'TOLLGATE_ALERTS_URL',
    secret: true,
    absent: 'nobody is told',
    takes: 'an http:// or https:// URL',
    meaning:
      'Address to which log lines that need attention are posted, as JSON. It is never shown, because such addresses contain keys.',
    fault: (value) => urlFault(value, ['http:', 'https:']),
  }),
  secret: optionalText({
    env: 'TOLLGATE_ALERTS_SECRET',
    secret: true,
    absent: 'posts are not signed',
    takes: 'text of 16 to 512 printable ASCII characters without spaces',
    meaning: 'Key of the HMAC-SHA256 of each post, in the header `x-tollgate-signature`.',
    fault: (value) => (/^[!-~]{16,512}$/.test(value) ? null : 'is too short, too long, or contains spaces'),
  }),
  level: choice({
    values: ['warn', 'error'],
    default: 'error',
    meaning:
      'Lowest severity that is posted. Two kinds of lines are posted at any severity: flagged providers, and operator-set budgets and limits that are spent to a percentage. Lines below `server.log_level` are never posted.',
  }),
};

export const ANALYTICS = {
  public: openToStrangers(
    choice({
      values: ['on', 'delayed', 'off'],
      default: 'on',
      meaning:
        'Whether everybody can see the figures of the market. `delayed` leaves out today and yesterday. `off` answers 404.',
    }),
  ),
  users_min: openToStrangers(
    whole({
      min: 0,
      max: 1_000_000,
      default: 0,
      meaning:
        'Smallest number of users for public figures. They leave out a day on which fewer users were active, and a day of a service that fewer users called, because its volume would show what these few paid. 0 shows every day.',
    }),
  ),
  retention_days: whole({
    min: 31,
    max: 36_500,
    default: 400,
    meaning: "Days for which an account's own figures are kept. The calls themselves are kept for ever.",
  }),
  every_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 2_000,
    meaning:
      'Time between two updates of the figures with new calls. With 0, this process does not update them: another process of the same database must do it.',
  }),
};
