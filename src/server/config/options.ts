import type { CamelKeys, Option, ValuesOf } from './option.ts';
import { AUTHORIZATION, OAUTH, SESSIONS, SIGN_IN } from './options/access.ts';
import { ALERTS, ANALYTICS, TELEMETRY } from './options/telemetry.ts';
import { BILLING, LEDGER, PAYMENTS, QUOTES } from './options/billing.ts';
import { LIMITS, PACKAGES, UPSTREAM } from './options/limits.ts';
import { BATCHES, MEDIA, MCP, TASKS, WEBHOOKS, RESPONSES } from './options/protocols.ts';
import { SERVER, DATABASE, REDIS } from './options/server.ts';
import { CLUSTER, TUNNEL } from './options/network.ts';
import { PEOPLE } from './options/people.ts';

export const SECTIONS = {
  server: SERVER,
  sign_in: SIGN_IN,
  sessions: SESSIONS,
  oauth: OAUTH,
  authorization: AUTHORIZATION,
  people: PEOPLE,
  tunnel: TUNNEL,
  cluster: CLUSTER,
  database: DATABASE,
  redis: REDIS,
  telemetry: TELEMETRY,
  limits: LIMITS,
  billing: BILLING,
  ledger: LEDGER,
  mcp: MCP,
  tasks: TASKS,
  webhooks: WEBHOOKS,
  upstream: UPSTREAM,
  packages: PACKAGES,
  media: MEDIA,
  payments: PAYMENTS,
  quotes: QUOTES,
  responses: RESPONSES,
  batches: BATCHES,
  analytics: ANALYTICS,
  alerts: ALERTS,
} satisfies Record<string, Readonly<Record<string, Option<unknown>>>>;

type Sections = typeof SECTIONS;

/** `section.key`. */
export type OptionKey = { [S in keyof Sections]: `${S}.${keyof Sections[S] & string}` }[keyof Sections];

/** The values of all options, with sections and keys in camel case. */
export type OptionValues = CamelKeys<{ [S in keyof Sections]: CamelKeys<ValuesOf<Sections[S]>> }>;
