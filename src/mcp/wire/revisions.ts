/**
 * Revisions of MCP. In the modern one each request is complete in itself and names its revision. The legacy ones have
 * `initialize` and sessions.
 */
export const MODERN = '2026-07-28';
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
type LegacyRevision = (typeof LEGACY)[number];

export const isLegacyRevision = (version: unknown): version is LegacyRevision =>
  (LEGACY as readonly unknown[]).includes(version);

/** The revision to agree on with a legacy client: the one that it asks for if the gateway knows it, else the newest. */
export const agreedRevision = (revision: unknown): LegacyRevision =>
  isLegacyRevision(revision) ? revision : LEGACY[0];

/**
 * Whether a version belongs to the modern era. The gateway knows only MODERN of it. Versions are dates, so they compare
 * as text.
 */
export const isModernEra = (version: string): boolean => version >= MODERN;

/** `modern` has no sessions (2026-07-28). `legacy` is every revision before it. */
export type Era = 'modern' | 'legacy';

/** Members of `_meta` that the x402 transport for MCP defines. */
export const X402 = { payment: 'x402/payment', response: 'x402/payment-response' } as const;

export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  relatedTask: 'io.modelcontextprotocol/related-task',
} as const;

export const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** For errors without a better code; legacy servers use it for sessions. */
  server: -32000,
  /** Of an unknown session. The SDKs' own servers use it. */
  noSession: -32001,
  /** Of legacy servers; modern servers use invalidParams. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  /** The client has to open a URL and send its request again. Of 2025-11-25 alone. */
  urlElicitation: -32042,
} as const;

/** HTTP status of an error that is the whole reply of a modern request. Every other error goes out with 200. */
const MODERN_STATUS: ReadonlyMap<number, number> = new Map([
  [ERROR.parse, 400],
  [ERROR.invalidRequest, 400],
  [ERROR.methodNotFound, 404],
  [ERROR.headerMismatch, 400],
  [ERROR.missingCapability, 400],
  [ERROR.unsupportedVersion, 400],
]);

export const modernStatusOf = (code: number): number => MODERN_STATUS.get(code) ?? 200;

/** Levels of a log message, lowest first. */
const LOG_LEVELS: readonly unknown[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

/** The rank of a log level, lowest first. -1 if the value is not a level. */
export const rankOfLevel = (level: unknown): number => LOG_LEVELS.indexOf(level);

/** Says why a value is not a log level, as words that follow its name. Null if it is a level. */
export const levelFault = (level: unknown): string | null =>
  LOG_LEVELS.includes(level) ? null : `must be one of ${LOG_LEVELS.join(', ')}`;

export interface MethodRule {
  readonly billing: 'billed' | 'free';
  /** The side that writes the answer. The gateway may still ask the upstream for facts that it needs. */
  readonly answered: 'upstream' | 'gateway';
  /** The member of `params` that the Mcp-Name header repeats. */
  readonly nameParam?: 'name' | 'uri' | 'taskId';
  /** The result may be `input_required` (modern). */
  readonly inputRequired?: true;
  /** The result carries `ttlMs` and `cacheScope` (modern). */
  readonly cacheable?: true;
  /** Asks for something else than tools, so whoever may use just some tools of a server may not use it. */
  readonly whole?: true;
  /** May be posted with neither session nor envelope, because nothing is kept beyond its one answer. */
  readonly bare?: true;
}

type MethodTable = Readonly<Record<string, MethodRule>>;

/** Without Object.prototype, so that a method named `constructor` is as unknown as any other. */
const table = (rules: Record<string, MethodRule>): MethodTable =>
  Object.freeze(Object.assign(Object.create(null), rules) as MethodTable);

const upstream = { billing: 'free', answered: 'upstream' } as const;
const gateway = { billing: 'free', answered: 'gateway' } as const;
const bare = { bare: true } as const;
const cacheable = { cacheable: true } as const;

const CALL: MethodRule = { billing: 'billed', answered: 'upstream', nameParam: 'name', inputRequired: true, ...bare };
const READ: MethodRule = { ...upstream, nameParam: 'uri', inputRequired: true, whole: true, ...cacheable, ...bare };
const GET_PROMPT: MethodRule = { ...upstream, nameParam: 'name', inputRequired: true, whole: true, ...bare };
const OF_TASK: MethodRule = { ...upstream, nameParam: 'taskId' };
const LIST: MethodRule = { ...upstream, ...cacheable, ...bare };

const COMMON = {
  'tools/call': CALL,
  'tools/list': LIST,
  'resources/list': LIST,
  'resources/templates/list': LIST,
  'resources/read': READ,
  'prompts/list': LIST,
  'prompts/get': GET_PROMPT,
  'completion/complete': { ...upstream, whole: true, ...bare },
} satisfies Record<string, MethodRule>;

/**
 * Every request that a client may make in the modern revision. Others get "method not found". `tasks/*` belong to the
 * extension for tasks.
 */
export const MODERN_METHODS: MethodTable = table({
  ...COMMON,
  'server/discover': { ...gateway, ...cacheable },
  'subscriptions/listen': upstream,
  'tasks/get': OF_TASK,
  'tasks/update': OF_TASK,
  'tasks/cancel': OF_TASK,
});

/** Every request that a client may make in a legacy session. */
export const LEGACY_METHODS: MethodTable = table({
  ...COMMON,
  initialize: gateway,
  ping: { ...gateway, ...bare },
  'resources/subscribe': { ...upstream, whole: true },
  'resources/unsubscribe': { ...upstream, whole: true },
  'logging/setLevel': upstream,
});

/** Notifications that a client sends. Others are dropped. */
export const CLIENT_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
]);
