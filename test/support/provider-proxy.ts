import { createProxy, type Proxy, type ProxyOptions } from '../../src/providers/proxy/proxy.ts';
import { createLog } from '../../src/providers/proxy/log.ts';
import type { ModelFacts, CommandTarget, ServiceConfig, ServiceTarget } from '../../src/server/config/service.ts';
import { COMPILED_ONCE } from './compiled-once.ts';
import { seededRandom } from './provider/random.ts';

/** A proxy in this process and its parsed log lines. */
export interface RunningProxy {
  readonly proxy: Proxy;
  readonly lines: Record<string, unknown>[];
  /** Resolves with the next past or future line with this message. Each line is returned only once. */
  logged(msg: string): Promise<Record<string, unknown>>;
}

export interface ProxySetting {
  readonly url: string;
  readonly services: readonly ServiceConfig[];
  readonly options?: Partial<ProxyOptions>;
}

/** Dials `url` with an API key, or with the wallet of `options`. */
export function runProxy({ url, services, options = {} }: ProxySetting): RunningProxy {
  const lines: Record<string, unknown>[] = [];
  const given = new Set<object>();
  let wake = Promise.withResolvers<void>();
  const log = createLog({
    level: 'debug',
    style: 'json',
    secrets: ['the-api-key-of-the-provider'],
    write(line) {
      lines.push(JSON.parse(line) as Record<string, unknown>);
      wake.resolve();
      wake = Promise.withResolvers();
    },
    now: Date.now,
  });
  const router = { url, domain: new URL(url).host, wallet: null, apiKey: 'the-api-key-of-the-provider' };
  const proxy = createProxy({
    config: { file: null, router, services, providers: [], packages: { wall: 'if_available' as const } },
    wallet: null,
    log,
    now: Date.now,
    random: seededRandom(1),
    env: { PATH: process.env['PATH'] },
    ...options,
  });
  proxy.start();
  return {
    proxy,
    lines,
    async logged(msg) {
      for (;;) {
        const line = lines.find((one) => one['msg'] === msg && !given.has(one));
        if (line) {
          given.add(line);
          return line;
        }
        await wake.promise;
      }
    },
  };
}

const FIELDS = { displayName: 'One', providerName: 'Mine', description: '', variants: {} };
const at = (url: string, apiKey: string | null): ServiceTarget => ({ kind: 'http', url, apiKey });

export function modelAt(
  name: string,
  url: string,
  apiKey: string | null = 'upstream-key-canary',
  facts: Partial<ModelFacts> = {},
): ServiceConfig {
  const model = {
    upstreamModel: 'test/model',
    contextLength: 8_192,
    maxOutputTokens: null,
    inputModalities: ['text'],
    outputModalities: ['text'],
    ...facts,
  };
  return {
    service: { ...FIELDS, name, primitive: 'model', rates: { prompt: 1_000_000n, completion: 1_000_000n }, model },
    target: at(url, apiKey),
  };
}

export function toolAt(name: string, url: string, apiKey: string | null = null): ServiceConfig {
  return {
    service: { ...FIELDS, name, primitive: 'tool', rates: { call: 1_000_000_000n }, priceCap: null },
    target: at(url, apiKey),
  };
}

const AGENT = {
  cardPath: '/.well-known/agent-card.json',
  rpcPath: null,
  chargedPer: 'message',
  nestedMax: 0n,
} as const;

export function agentAt(name: string, url: string): ServiceConfig {
  return {
    service: { ...FIELDS, name, primitive: 'agent', rates: { call: 1_000_000_000n }, priceCap: null, agent: AGENT },
    target: at(url, null),
  };
}

/** A tool whose process is a Node script. Each session has its own process, unless `changes` say otherwise. */
export function toolOfScript(
  name: string,
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  changes: Partial<CommandTarget> = {},
): ServiceConfig {
  const own = {
    kind: 'command',
    command: process.execPath,
    args: [COMPILED_ONCE, script, ...args],
    env,
    cwd: null,
  } as const;
  return {
    service: { ...FIELDS, name, primitive: 'tool', rates: { call: 1_000_000_000n }, priceCap: null },
    target: { ...own, shared: false, sessionsMax: 16, sessionIdleMs: 300_000, roots: false, ...changes },
  };
}
