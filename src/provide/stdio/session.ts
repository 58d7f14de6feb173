import type { CommandTarget } from '#gateway/wire';
import type { Log } from '../log.ts';
import { startChild, type Child, type StopTimes } from './child-process.ts';
import { errorText, isObject, METHOD_NOT_FOUND, parseMessage, type JsonObject, type Message } from './json-rpc.ts';

/** Takes what comes back for one request. After `response` or `broken` nothing more comes. */
export interface Answer {
  /** A notification that belongs to the request, with its own progress token. */
  notification(message: JsonObject): void;
  /** The response; its `id` is to be replaced. */
  response(message: JsonObject): void;
  /** The process ended first. */
  broken(): void;
}

/** One run of an MCP server's process, and the requests that many clients have on its one pipe. */
export interface Session {
  /** The result of its `initialize`; null of a server that has no such thing. Rejects when it cannot be initialised. */
  readonly initialized: Promise<JsonObject | null>;
  /** Settles with how the process ended; every open request is broken by then. */
  readonly ended: Promise<string>;
  /** Sends a request under an id of the pipe's own. Returns how to cancel it, or null when the process does not take it. */
  ask(request: JsonObject, answer: Answer): (() => void) | null;
  notify(notification: JsonObject): void;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

export interface SessionOptions {
  readonly service: string;
  readonly target: CommandTarget;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of this program, told to the server. */
  readonly version: string;
  readonly log: Log;
}

/** The newest revision in which a client begins with `initialize`. A server may answer with an older one. */
const PROTOCOL_VERSION = '2025-11-25';
/** A first start may have to fetch what it runs. */
const INITIALIZE_MS = 60_000;
const GARBAGE_SHOWN = 200;

export function startSession({ service, target, env, version, log }: SessionOptions): Session {
  const open = new Map<number, { readonly answer: Answer; readonly token: unknown }>();
  let lastId = 0;

  const child: Child = startChild({
    target,
    env,
    line: take,
    tooLong: () => log.warn({ service }, 'the tool wrote a line that is too long; it is passed over'),
    complaint: (text) => log.info({ service, text }, 'the tool says'),
  });

  function take(text: string): void {
    const message = parseMessage(text);
    if (!message) return log.warn({ service, text: text.slice(0, GARBAGE_SHOWN) }, 'the tool wrote a line that is no JSON-RPC; it is passed over');
    if (message.kind === 'response') {
      const asked = open.get(Number(message.id));
      // One that was cancelled may be answered all the same.
      if (!asked) return;
      open.delete(Number(message.id));
      asked.answer.response(message.all);
    } else if (message.kind === 'request') answerServer(message);
    else passOn(message.all);
  }

  /** What a server may ask of a client needs a client of its own; this pipe is shared by many. */
  function answerServer({ id, method }: Extract<Message, { kind: 'request' }>): void {
    child.send(method === 'ping' ? JSON.stringify({ jsonrpc: '2.0', id, result: {} }) : errorText(id, METHOD_NOT_FOUND, 'Method not found'));
  }

  /** Progress is told to the client that asked for it; other notifications belong to no request. */
  function passOn(message: JsonObject): void {
    const params = message['params'];
    if (message['method'] !== 'notifications/progress' || !isObject(params)) return;
    const asked = open.get(Number(params['progressToken']));
    if (asked) asked.answer.notification({ ...message, params: { ...params, progressToken: asked.token } });
  }

  function ask(request: JsonObject, answer: Answer): (() => void) | null {
    const id = ++lastId;
    const params = request['params'];
    const meta = isObject(params) ? params['_meta'] : undefined;
    const token = isObject(meta) ? meta['progressToken'] : undefined;
    // Clients choose their tokens as they choose their ids: two may have the same.
    const own =
      token === undefined
        ? { ...request, id }
        : { ...request, id, params: { ...(params as JsonObject), _meta: { ...(meta as JsonObject), progressToken: id } } };
    if (!child.send(JSON.stringify(own))) return null;
    open.set(id, { answer, token });
    return () => {
      if (open.delete(id)) notify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the client left' } });
    };
  }

  const notify = (notification: JsonObject) => void child.send(JSON.stringify(notification));

  const ended = child.ended.then((how) => {
    for (const { answer } of open.values()) answer.broken();
    open.clear();
    return how;
  });

  return { initialized: initialize(), ended, ask, notify, stop: child.stop, kill: child.kill };

  function initialize(): Promise<JsonObject | null> {
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject | null>();
    const timer = setTimeout(() => reject(new Error('did not answer to initialize in time')), INITIALIZE_MS);
    void promise.then(
      () => clearTimeout(timer),
      () => clearTimeout(timer),
    );
    const params = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'tollgate', version } };
    ask(
      { jsonrpc: '2.0', method: 'initialize', params },
      {
        notification() {},
        response({ result, error }) {
          if (isObject(result)) {
            notify({ jsonrpc: '2.0', method: 'notifications/initialized' });
            resolve(result);
          } else if (isObject(error) && error['code'] === METHOD_NOT_FOUND) {
            // A server of the revisions without sessions: there is nothing to begin.
            resolve(null);
          } else reject(new Error('refused to initialize'));
        },
        broken: () => reject(new Error('ended before it was initialized')),
      },
    );
    return promise;
  }
}
