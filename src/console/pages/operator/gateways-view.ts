import type { RaisedAlert, ReportedGateway } from '#observe';
import { objectOf, titled } from '../route-schemas.ts';

/* The processes of all gateways of the database, and what they warned of. */

const time = (description: string) => ({ type: 'string', description });

const alertProperties = {
  level: {
    type: 'string',
    description: '`warn`, `error` or `fatal`; `info` for a line that is an alert nevertheless.',
  },
  message: { type: 'string' },
  subject: { type: 'string', description: 'What it is about, such as a provider. May be empty.' },
  count: { type: 'integer', description: 'How often it was raised since the start of the gateway.' },
  first_at: time('When it was raised first.'),
  last_at: time('When it was raised last.'),
} as const;

export const alertSchema = titled(
  'RaisedAlert',
  objectOf({ ...alertProperties, gateway: { type: 'string', description: 'Id of the process that raised it.' } }),
);

export const gatewaySchema = titled(
  'GatewayState',
  objectOf({
    id: { type: 'string', description: 'Of the process. A restart has another.' },
    host: { type: 'string' },
    pid: { type: 'integer' },
    version: { type: 'string' },
    started_at: time('When the process started.'),
    reported_at: time('When it reported last.'),
    state: {
      type: 'string',
      enum: ['ready', 'not_ready', 'stopping', 'silent'],
      description:
        '`ready`: it takes calls. `not_ready`: it refuses them; `checks` says why. `stopping`: it ends. `silent`: it has not reported for a minute and a half, so it has ended without a word, hangs, or does not reach the database.',
    },
    checks: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Each part with `ok` or its problem, as `/health/ready` says it.',
    },
    in_flight: { type: 'integer', description: 'Attempts that run.' },
    memory_bytes: { type: 'integer', description: 'Resident memory.' },
    answers: { type: 'boolean', description: 'Whether it is the process that made this answer.' },
    alerts: {
      type: 'array',
      description: 'Of the last day, and since its start, the newest first.',
      items: objectOf(alertProperties),
    },
  }),
);

const iso = (at: number): string => new Date(at).toISOString();

const viewAlert = ({ level, message, subject, count, firstAt, lastAt }: RaisedAlert) => ({
  level,
  message,
  subject,
  count,
  first_at: iso(firstAt),
  last_at: iso(lastAt),
});

export const viewGateway = (gateway: ReportedGateway) => ({
  id: gateway.id,
  host: gateway.host,
  pid: gateway.pid,
  version: gateway.version,
  started_at: iso(gateway.startedAt),
  reported_at: iso(gateway.reportedAt),
  state: gateway.isSilent ? 'silent' : gateway.state,
  checks: gateway.checks,
  in_flight: gateway.inFlight,
  memory_bytes: gateway.rssBytes,
  answers: gateway.isThis,
  alerts: gateway.alerts.map(viewAlert),
});

export const viewAlerts = (gateways: readonly ReportedGateway[]) =>
  gateways
    .flatMap(({ id, alerts }) => alerts.map((alert) => ({ ...viewAlert(alert), gateway: id })))
    .sort((a, b) => (a.last_at < b.last_at ? 1 : -1));

const DAY_MS = 86_400_000;

/**
 * Since when all alerts are known, in epoch milliseconds: a process shows those of a day, and forgets all when it ends.
 * null without a process.
 */
export function alertsSince(gateways: readonly ReportedGateway[], now: number): number | null {
  if (gateways.length === 0) return null;
  return Math.max(now - DAY_MS, ...gateways.map(({ startedAt }) => startedAt));
}
