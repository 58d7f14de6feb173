import { IncomingMessage } from 'node:http';
import type { ReceivedRequest } from './agent.ts';

const KEPT = 1_000;
const PATIENCE_MS = 60_000;

/** Reads a whole request. */
export async function receive(incoming: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  const parsed = parse(body);
  const rpc =
    typeof parsed === 'object' && parsed !== null && 'jsonrpc' in parsed
      ? (parsed as { method?: unknown; params?: unknown })
      : null;
  const version = incoming.headers['a2a-version'];
  return {
    verb: incoming.method ?? '',
    path: incoming.url ?? '',
    method: typeof rpc?.method === 'string' ? rpc.method : null,
    version: typeof version === 'string' ? version : null,
    headers: incoming.headers,
    body,
    params: rpc ? rpc.params : parsed,
  };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * Returns the same request with an unread body, for a handler that reads it. `headers` replace the original headers.
 */
export function replayOf(
  incoming: IncomingMessage,
  request: ReceivedRequest,
  headers = incoming.headers,
): IncomingMessage {
  const replay = new IncomingMessage(incoming.socket);
  Object.assign(replay, {
    method: incoming.method,
    url: incoming.url,
    headers,
    httpVersion: incoming.httpVersion,
    complete: true,
  });
  if (request.body !== '') replay.push(request.body);
  replay.push(null);
  return replay;
}

/** Whether the gateway asks for a task by itself: it needs no history. */
const isOwnLook = ({ verb, path, method, params }: ReceivedRequest): boolean =>
  method === 'GetTask' || method === 'tasks/get'
    ? (params as { historyLength?: unknown } | undefined)?.historyLength === 0
    : verb === 'GET' && path.includes('historyLength=0');

/** The received requests, and a way to wait for one. */
export interface Received {
  readonly requests: readonly ReceivedRequest[];
  /** Those that a client caused. */
  readonly asked: readonly ReceivedRequest[];
  add(request: ReceivedRequest): void;
  /** Resolves with the first past or future request for which `fits` is true. Rejects after a minute. */
  first(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
}

export function createReceived(): Received {
  const requests: ReceivedRequest[] = [];
  const waiting = new Set<(request: ReceivedRequest) => void>();
  return {
    requests,
    get asked() {
      return requests.filter((request) => !request.path.startsWith('/.well-known/') && !isOwnLook(request));
    },
    add(request) {
      requests.push(request);
      if (requests.length > KEPT) requests.shift();
      for (const look of waiting) look(request);
    },
    first(fits) {
      const there = requests.find(fits);
      if (there) return Promise.resolve(there);
      const seen = () => requests.map(({ verb, path, method }) => `${verb} ${path} ${method ?? ''}`).join('\n');
      return within(`a request that fits ${fits.toString()}`, seen, (resolve) => {
        const look = (request: ReceivedRequest) => {
          if (fits(request)) resolve(request);
        };
        waiting.add(look);
        return () => waiting.delete(look);
      });
    },
  };
}

/** Waits for an event for at most a minute. `subscribe` gets the resolver and returns a function that unsubscribes. */
export function within<T>(
  what: string,
  seen: () => string,
  subscribe: (resolve: (value: T) => void) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const undo = subscribe((value) => {
      clearTimeout(timer);
      queueMicrotask(() => undo());
      resolve(value);
    });
    const timer = setTimeout(() => {
      undo();
      reject(new Error(`not within ${PATIENCE_MS} ms: ${what}. What came:\n${seen()}`));
    }, PATIENCE_MS);
  });
}
