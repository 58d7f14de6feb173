import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The members of a JSON-RPC request that a fault may depend on. */
export interface RpcRequest {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly method: string;
  readonly params?: unknown;
}

/**
 * The fault of a request:
 * - `refuse`: resets the connection. The node doesn't get the request.
 * - `error`: answers with a JSON-RPC error. The node doesn't get the request.
 * - `status`: answers with an HTTP status and a text that isn't JSON.
 * - `drop`: answers with a made-up result. The node doesn't get the request.
 * - `delay`: delays the answer.
 * - `hang`: never answers. The node doesn't get the request.
 * - `swallow`: the node executes the request, but the connection is reset instead of an answer.
 * - `rewrite`: changes the request to the node, or the result of its answer.
 */
export type RpcFault =
  | { readonly kind: 'refuse' | 'hang' | 'swallow' }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  | { readonly kind: 'status'; readonly status: number; readonly body: string }
  | { readonly kind: 'drop'; readonly result: unknown }
  | { readonly kind: 'delay'; readonly ms: number }
  | {
      readonly kind: 'rewrite';
      readonly request?: (request: RpcRequest) => RpcRequest;
      readonly result?: (result: unknown, request: RpcRequest) => unknown;
    };

export interface FaultRule {
  /** The methods that the rule applies to. Default: all. */
  readonly methods?: readonly string[];
  /** Further restricts the requests that the rule applies to. */
  readonly when?: (request: RpcRequest) => boolean;
  /** The number of requests that the rule applies to. Default: no limit. */
  readonly times?: number;
  readonly fault: RpcFault;
}

/**
 * An HTTP proxy on loopback before the JSON-RPC node of any chain. Without rules it forwards everything. It splits
 * batches into single requests.
 */
export interface RpcFaultProxy {
  readonly url: string;
  /** Replaces all rules. The first rule that applies to a request decides. */
  set(...rules: readonly FaultRule[]): void;
  /** Removes all faults and resets connections that hang. */
  heal(): void;
  /** All requests in order of arrival, including failed ones. */
  readonly seen: readonly RpcRequest[];
  forget(): void;
  /** Resolves with the next request of this method, whatever happens to it. */
  next(method: string): Promise<RpcRequest>;
  stop(): Promise<void>;
}

export async function startRpcFaultProxy(target: string): Promise<RpcFaultProxy> {
  let rules: { readonly rule: FaultRule; left: number }[] = [];
  let seen: RpcRequest[] = [];
  const hanging = new Set<ServerResponse>();
  const waiting: { readonly method: string; readonly resolve: (request: RpcRequest) => void }[] = [];

  const faultOf = (request: RpcRequest): RpcFault | null => {
    for (const entry of rules) {
      const { methods, when } = entry.rule;
      if (entry.left <= 0 || (methods && !methods.includes(request.method)) || (when && !when(request))) continue;
      entry.left -= 1;
      return entry.rule.fault;
    }
    return null;
  };

  const forward = async (request: RpcRequest): Promise<Record<string, unknown>> => {
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    return (await response.json()) as Record<string, unknown>;
  };

  /** Answers one request. `reset` and `hang` affect the connection. */
  async function answer(request: RpcRequest): Promise<unknown> {
    seen.push(request);
    for (const [index, one] of [...waiting.entries()].reverse()) {
      if (one.method !== request.method) continue;
      waiting.splice(index, 1);
      one.resolve(request);
    }
    const fault = faultOf(request);
    const head = { jsonrpc: '2.0', id: request.id };
    switch (fault?.kind) {
      case undefined:
        return forward(request);
      case 'refuse':
        return RESET;
      case 'hang':
        return HANG;
      case 'status':
        return { [STATUS]: fault };
      case 'error':
        return { ...head, error: { code: fault.code, message: fault.message } };
      case 'drop':
        return { ...head, result: fault.result };
      case 'swallow':
        await forward(request);
        return RESET;
      case 'delay':
        await new Promise((resolve) => setTimeout(resolve, fault.ms));
        return forward(request);
      case 'rewrite': {
        const got = await forward({ ...(fault.request?.(request) ?? request), id: request.id });
        return fault.result && 'result' in got ? { ...got, result: fault.result(got['result'], request) } : got;
      }
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as RpcRequest | RpcRequest[];
    const answers = await Promise.all([body].flat().map(answer));
    if (answers.includes(RESET)) return void response.destroy();
    if (answers.includes(HANG)) return void hanging.add(response);
    const broken = answers.find(
      (one): one is { [STATUS]: { status: number; body: string } } =>
        typeof one === 'object' && one !== null && STATUS in one,
    );
    if (broken)
      return void response.writeHead(broken[STATUS].status, { 'content-type': 'text/plain' }).end(broken[STATUS].body);
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  }

  const server = createServer((request, response) => {
    // The node can't be reached, or the client left.
    void serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const heal = (): void => {
    rules = [];
    for (const response of hanging) response.destroy();
    hanging.clear();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set(...given) {
      rules = given.map((rule) => ({ rule, left: rule.times ?? Infinity }));
    },
    heal,
    get seen() {
      return seen;
    },
    forget() {
      seen = [];
    },
    next: (method) => new Promise((resolve) => waiting.push({ method, resolve })),
    async stop() {
      heal();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const RESET = Symbol('reset');
const HANG = Symbol('hang');
const STATUS = Symbol('status');
