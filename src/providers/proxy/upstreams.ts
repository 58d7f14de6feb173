import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { isDeepStrictEqual } from 'node:util';
import {
  type Config,
  type ServiceConfig,
  IMAGE_PATHS,
  isAnswerPath,
  type Primitive,
  servesRealtime,
  VIDEO_API,
} from '#config';
import { loadAgent, noteUnread, skipInterimReplies } from '#wire/undici';
import { type ProxyFailure, parseServicePath, readEmptyRequest, SOCKET_HEADER } from '#network/tunnel';
import { KINDS_OF_MODELS, REALTIME_PATH } from '#config/model-kinds';
import { createSdkWorkers } from '#ai-sdk';
import { createForward, type Forward, type UpstreamRefusal } from './forward.ts';
import { createForwardSocket } from './forward-socket.ts';
import type { StopTimes } from './stdio/child-process.ts';
import { createStdioTool, type StdioTool } from './stdio/stdio-tool.ts';
import type { SupervisorOptions } from './stdio/supervisor.ts';
import { refuse } from './call-stream.ts';

interface UpstreamsOptions extends Pick<SupervisorOptions, 'env' | 'version' | 'log' | 'random' | 'now'> {
  readonly services: readonly ServiceConfig[];
  readonly packages: Config['packages'];
  /** Files that packages must not read. */
  readonly hidden: readonly string[];
  /** Timeout for the head of an upstream's reply. */
  readonly headTimeoutMs: number;
  readonly toolStop: StopTimes;
  readonly lateMs: number;
}

/** The upstreams behind a proxy: HTTP services, and tools whose processes the proxy runs. */
export interface Upstreams {
  readonly serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
  /** Rejects with ConfigError if this machine cannot confine the packages of these services as the file wants it. */
  check(services: readonly ServiceConfig[]): Promise<void>;
  /** Starts the upstreams of other services. Those that are new get calls at once, the others at `commit`. */
  prepare(services: readonly ServiceConfig[]): PreparedUpstreams;
  drain(): void;
  stop(): Promise<void>;
  kill(): void;
}

/** Services that are started beside those that are served. One of the two is called, once. */
export interface PreparedUpstreams {
  /** They take the place of the services so far. Running calls of these end as they began. */
  commit(): void;
  /** Ends what was started for them. */
  discard(): void;
}

interface Upstream {
  readonly config: ServiceConfig;
  readonly forward: Forward;
  readonly tool: StdioTool | null;
  running: number;
  /** Called when the last running call has ended. */
  idle: (() => void) | null;
}
type Table = ReadonlyMap<string, Upstream>;

const CONNECT_MS = 10_000;
/** Calls of one package at the same time. A tunnel has no more. */
const CALLS_MAX = 4_096;

const keyOf = ({ service: { primitive, name } }: ServiceConfig): string => keyOfCall(primitive, name);

/** Starts the processes of all tools. */
export function startUpstreams(options: UpstreamsOptions): Upstreams {
  const { log, toolStop, headTimeoutMs, lateMs } = options;
  const tools = new Set<StdioTool>();
  const timers = new Set<NodeJS.Timeout>();
  const HttpAgent = loadAgent();
  // There is no timeout inside a reply, because the gateway judges that: it cancels the call.
  const connections = {
    allowH2: false,
    headersTimeout: headTimeoutMs,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_MS },
  };
  const dispatcher = noteUnread(skipInterimReplies(new HttpAgent(connections)));
  /** Opens a connection for each request, for those that go out once more. */
  const fresh = skipInterimReplies(new HttpAgent({ ...connections, pipelining: 0 }));

  const workers = createSdkWorkers({
    connectionsMax: CALLS_MAX,
    headTimeoutMs,
    // There is no timeout inside a reply here either.
    idleTimeoutMs: 0,
    ...options.packages,
    hidden: options.hidden,
    log: (sdk, text) => log.warn({ sdk }, `a package of the AI SDK: ${text}`),
    tell: ({ text, keeps, why }) => (why === null ? log.info({ ...keeps }, text) : log.warn({ reason: why }, text)),
  });

  function open(config: ServiceConfig): Upstream {
    const { service, target } = config;
    const tool =
      target.kind === 'command'
        ? createStdioTool({ ...options, service: service.name, target, stopTimes: toolStop })
        : null;
    if (tool) tools.add(tool);
    const { name, primitive } = service;
    const failed = (failure: ProxyFailure, error: Error, requestId: string | null = null) =>
      log.warn({ service: name, primitive, failure, error, request_id: requestId }, 'the upstream failed');
    const refused = ({ status, replyText, requestId }: UpstreamRefusal) =>
      log.warn(
        { service: name, primitive, status, said: replyText, request_id: requestId },
        'the upstream answered with an error',
      );
    const forward =
      target.kind === 'sdk'
        ? createForward({ target: PIPE, dispatcher: workers.open(target), failed, refused })
        : target.kind === 'http'
          ? createForward({ target, ...pathsOf(service), dispatcher, fresh, failed, refused })
          : tool!.forward;
    const forwardSocket =
      target.kind === 'http' && service.primitive === 'model' && servesRealtime(service.model)
        ? createForwardSocket({ target, timeoutMs: headTimeoutMs, failed, refused })
        : null;
    const upstream: Upstream = {
      config,
      tool,
      running: 0,
      idle: null,
      forward(stream, headers, rest) {
        upstream.running += 1;
        stream.once('close', () => {
          upstream.running -= 1;
          if (upstream.running === 0) upstream.idle?.();
        });
        if (headers[SOCKET_HEADER] === undefined) forward(stream, headers, rest);
        else if (forwardSocket !== null) forwardSocket(stream, headers, rest);
        else refuse(stream, 'unknown_service');
      },
    };
    return upstream;
  }

  /** An upstream that has not changed is kept: its process goes on, and so do its sessions. */
  const tableOf = (services: readonly ServiceConfig[], before: Table): Table =>
    new Map(
      services.map((config) => {
        const previous = before.get(keyOf(config));
        return [
          keyOf(config),
          previous && isDeepStrictEqual(previous.config.target, config.target) ? previous : open(config),
        ];
      }),
    );

  let current = tableOf(options.services, new Map());
  let coming: Table = new Map();
  /** Services that are not offered any more. */
  const late = new Map<string, Upstream>();

  function endTool(upstream: Upstream): void {
    const { tool } = upstream;
    if (upstream.config.target.kind === 'sdk')
      return workers.keepOnly([current, coming, late].flatMap((table) => [...table.values()].map(targetOf)));
    if (tool === null || !tools.has(tool)) return;
    // Streams of subscriptions have no end of their own, and would keep the process for ever.
    tool.drain();
    const end = () => void tool.stop().finally(() => tools.delete(tool));
    if (upstream.running === 0) end();
    else upstream.idle = end;
  }

  function retire(key: string, upstream: Upstream): void {
    if (!current.has(key)) late.set(key, upstream);
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (late.get(key) === upstream) late.delete(key);
      endTool(upstream);
    }, lateMs);
    timer.unref();
    timers.add(timer);
  }

  return {
    serve: createCallTable((key) => (current.get(key) ?? coming.get(key) ?? late.get(key))?.forward ?? null),
    check: (services) => workers.prepare(services.map(({ target }) => target)),
    prepare(services) {
      const before = current;
      const table = tableOf(services, before);
      coming = table;
      return {
        commit() {
          current = table;
          coming = new Map();
          for (const key of table.keys()) late.delete(key);
          for (const [key, upstream] of before) if (table.get(key) !== upstream) retire(key, upstream);
        },
        discard() {
          coming = new Map();
          for (const [key, upstream] of table) if (before.get(key) !== upstream) endTool(upstream);
        },
      };
    },
    drain() {
      for (const tool of tools) tool.drain();
    },
    async stop() {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([
        ...[...tools].map((tool) => tool.stop()),
        dispatcher.destroy(),
        fresh.destroy(),
        workers.close(),
      ]);
    },
    kill() {
      for (const timer of timers) clearTimeout(timer);
      for (const tool of tools) tool.kill();
      void dispatcher.destroy();
      void fresh.destroy();
      void workers.close();
    },
  };
}

const targetOf = ({ config: { target } }: Upstream) => target;

function pathsOf(service: ServiceConfig['service']): {
  readonly paths?: 'model' | 'agent';
  readonly rpcPath?: string | null;
} {
  if (service.primitive === 'model') return { paths: 'model' };
  return service.primitive === 'agent' ? { paths: 'agent', rpcPath: service.agent.rpcPath } : {};
}

/** The pipe to a package has no address and needs no key. */
const PIPE = { kind: 'http', url: 'http://ai-sdk', apiKey: null } as const;

/**
 * The paths that a gateway may call with the provider's key: only work that has a price, not the files, fine-tuning or
 * accounts of the upstream's API. Tools and agents have no such list.
 */
const OFFERED: Readonly<Record<Primitive, (path: string) => boolean>> = {
  model: (path) => MODEL_PATHS.has(path) || isAnswerPath(path),
  image: (path) => MADE_AT.has(path),
  video: (path) => path.startsWith(VIDEO_API.path) && BELOW_VIDEOS.test(path.slice(VIDEO_API.path.length)),
  tool: () => true,
  agent: () => true,
};
const MODEL_PATHS: ReadonlySet<string> = new Set([
  '/chat/completions',
  '/completions',
  ...KINDS_OF_MODELS.flatMap(([, { paths }]) => paths),
]);
const MADE_AT: ReadonlySet<string> = new Set(Object.values(IMAGE_PATHS).flatMap(({ make, edit }) => [make, edit]));
/** A video job, or its file. */
const BELOW_VIDEOS = new RegExp(`^(?:/${VIDEO_API.jobId}(?:/content)?)?$`);

function isOffered({ primitive, rest }: { readonly primitive: Primitive; readonly rest: string }, socket: boolean) {
  const path = rest.split('?', 1)[0]!;
  return socket ? primitive === 'model' && path === REALTIME_PATH : OFFERED[primitive](path);
}

/** The key of a service among the services of a proxy. */
export const keyOfCall = (primitive: Primitive, service: string): string => `${primitive}/${service}`;

/** Creates the handler for the calls of a tunnel. `find` returns the service with a key of `keyOfCall`, or null. */
export function createCallTable(
  find: (key: string) => Forward | null,
): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  return (stream, headers) => {
    const path = parseServicePath(headers[':path'] ?? '');
    const forward = path && find(keyOfCall(path.primitive, path.service));
    if (!forward || !isOffered(path, headers[SOCKET_HEADER] !== undefined)) return refuse(stream, 'unknown_service');
    readEmptyRequest(stream);
    forward(stream, headers, path.rest);
  };
}
