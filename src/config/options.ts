import type { CamelKeys } from './camel-keys.ts';
import type { Option, ValuesOf } from './option.ts';
import { OAUTH, SESSIONS, SIGN_IN } from './options/access.ts';
import { ALERTS } from './options/alerts.ts';
import { ANALYTICS } from './options/analytics.ts';
import { BILLING } from './options/billing.ts';
import { LIMITS } from './options/limits.ts';
import { MEDIA } from './options/media.ts';
import { PAYMENTS } from './options/payments.ts';
import { MCP, TASKS, WEBHOOKS } from './options/protocols.ts';
import { QUOTES } from './options/quotes.ts';
import { RESPONSES } from './options/responses.ts';
import { SERVER } from './options/server.ts';
import { CLUSTER, DATABASE, REDIS, TELEMETRY } from './options/stores.ts';
import { TUNNEL } from './options/tunnel.ts';
import { UPSTREAM } from './options/upstream.ts';

/** Every option outside of blocks, by section and key. */
export const SECTIONS = {
  server: SERVER,
  sign_in: SIGN_IN,
  sessions: SESSIONS,
  oauth: OAUTH,
  tunnel: TUNNEL,
  cluster: CLUSTER,
  database: DATABASE,
  redis: REDIS,
  telemetry: TELEMETRY,
  limits: LIMITS,
  billing: BILLING,
  mcp: MCP,
  tasks: TASKS,
  webhooks: WEBHOOKS,
  upstream: UPSTREAM,
  media: MEDIA,
  payments: PAYMENTS,
  quotes: QUOTES,
  responses: RESPONSES,
  analytics: ANALYTICS,
  alerts: ALERTS,
} satisfies Record<string, Readonly<Record<string, Option<unknown>>>>;

type Sections = typeof SECTIONS;

/** `section.key`. */
export type OptionKey = { [S in keyof Sections]: `${S}.${keyof Sections[S] & string}` }[keyof Sections];

/** The values of all options, with sections and keys in camel case. */
export type OptionValues = CamelKeys<{ [S in keyof Sections]: CamelKeys<ValuesOf<Sections[S]>> }>;
