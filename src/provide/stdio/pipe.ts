import { errorText, removeAt, replaceAt, resultText, spanAt, type JsonObject } from '#wire';
import type { StopTimes } from './child-process.ts';
import { CAPABILITIES, envelopeOf } from './era.ts';
import { ERROR, metaOf, paramsOf, type Message, type Notification, type Request } from './json-rpc.ts';
import { startMessageProcess, type ProcessOptions } from './message-process.ts';

/** Takes what comes back for one request. After any but `notification` nothing more comes. */
export interface Answer {
  /** A notification that belongs to the request, under its own progress token or subscription. */
  notification(text: string): void;
  /** The response, under the request's own id. */
  response(text: string, value: JsonObject): void;
  /** There will be no response, and nothing is wrong. */
  end(): void;
  /** The process ended first. */
  broken(): void;
}

/** One run of an MCP server's process, and the requests that many clients have on its one pipe. */
export interface Pipe {
  /** Settles with how the process ended; every open request is broken by then. */
  readonly ended: Promise<string>;
  /**
   * Sends a request under an id of the pipe's own. Returns how to cancel it, or null when the process does not take it.
   */
  ask(request: Request, answer: Answer): (() => void) | null;
  /** A request of this program: resolves with the response, or with null when the process ended. */
  query(method: string, params?: JsonObject): Promise<JsonObject | null>;
  /** A notification of this program. */
  tell(method: string, params?: JsonObject): void;
  /** A client's notification, as it is. */
  pass(notification: Notification): void;
  /** Ends the subscriptions, which would never end by themselves. */
  drain(): void;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

const ID = ['id'];
const TOKEN = ['params', '_meta', 'progressToken'];
const TOKEN_BACK = ['params', 'progressToken'];
/** The directories that a client may name are this machine's. */
const ROOTS = ['params', '_meta', CAPABILITIES, 'roots'];
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const LISTEN = 'subscriptions/listen';

interface Asked {
  readonly request: Request;
  readonly answer: Answer;
  /** JSON text of its progress token. */
  readonly token: string | null;
}

/** Starts a server's process for many clients. */
export function openPipe(options: ProcessOptions): Pipe {
  const { target } = options;
  const open = new Map<number, Asked>();
  let lastId = 0;

  const child = startMessageProcess(options, take);

  function take(message: Message): void {
    if (message.kind === 'notification') return passOn(message);
    if (message.kind === 'request') return answerServer(message);
    const id = Number(message.value['id']);
    const asked = open.get(id);
    // One that was cancelled may be answered all the same.
    if (!asked) return;
    open.delete(id);
    const text = replaceAt(message.text, ID, asked.request.idText);
    asked.answer.response(
      asked.request.method === LISTEN ? replaceAt(text, ['result', '_meta', SUBSCRIPTION], asked.request.idText) : text,
      message.value,
    );
  }

  /** The server's own requests are for a single client, and this pipe has many: all but `ping` are refused. */
  function answerServer({ idText, method }: Request): void {
    child.send(
      method === 'ping'
        ? resultText(idText, '{}')
        : errorText(idText, { code: ERROR.methodNotFound, message: 'Method not found' }),
    );
  }

  /**
   * Progress and changes are told to the client that asked for them. Other notifications could be about anybody's
   * request: nobody gets them.
   */
  function passOn(notification: Notification): void {
    const params = paramsOf(notification);
    if (notification.method === 'notifications/progress') {
      const asked = open.get(Number(params['progressToken']));
      if (asked?.token) asked.answer.notification(replaceAt(notification.text, TOKEN_BACK, asked.token));
      return;
    }
    if (notification.method === 'notifications/cancelled') {
      const id = Number(params['requestId']);
      const asked = open.get(id);
      // A server ends a subscription so. Of other requests a legacy server speaks in ids of its own.
      if (asked?.request.method !== LISTEN || !open.delete(id)) return;
      return asked.answer.end();
    }
    const asked = open.get(Number(metaOf(notification)[SUBSCRIPTION]));
    if (asked?.request.method === LISTEN)
      asked.answer.notification(replaceAt(notification.text, ['params', '_meta', SUBSCRIPTION], asked.request.idText));
  }

  function ask(request: Request, answer: Answer): (() => void) | null {
    const id = ++lastId;
    const span = spanAt(request.text, TOKEN);
    const token = span && request.text.slice(span.start, span.end);
    // Clients choose their tokens as they choose their ids: two may have the same.
    const asked = target.roots ? request.text : removeAt(request.text, ROOTS);
    const text = replaceAt(asked, ID, String(id));
    if (!child.send(token === null ? text : replaceAt(text, TOKEN, String(id)))) return null;
    open.set(id, { request, answer, token });
    return () => {
      if (open.delete(id)) cancel(id, request, 'the client left');
    };
  }

  /**
   * Under the envelope of its request: a modern server that gets a message without one may take its client for a
   * legacy one.
   */
  function cancel(id: number, request: Request, reason: string): void {
    const meta = envelopeOf(request);
    tell('notifications/cancelled', { ...(meta ? { _meta: meta } : {}), requestId: id, reason });
  }

  const tell = (method: string, params?: JsonObject) =>
    void child.send(JSON.stringify({ jsonrpc: '2.0', method, params }));

  function query(method: string, params?: JsonObject): Promise<JsonObject | null> {
    const { promise, resolve } = Promise.withResolvers<JsonObject | null>();
    const value = { jsonrpc: '2.0', id: 0, method, params };
    const gone = () => resolve(null);
    const answer: Answer = {
      notification() {},
      response: (_text, response) => resolve(response),
      end: gone,
      broken: gone,
    };
    if (ask({ kind: 'request', idText: '0', method, text: JSON.stringify(value), value }, answer) === null) gone();
    return promise;
  }

  const ended = child.ended.then((how) => {
    for (const { answer } of open.values()) answer.broken();
    open.clear();
    return how;
  });

  return {
    ended,
    ask,
    query,
    tell,
    pass: ({ text }) => void child.send(text),
    drain() {
      for (const [id, { request, answer }] of open) {
        if (request.method !== LISTEN) continue;
        open.delete(id);
        cancel(id, request, 'the provider is shutting down');
        const result = `{"resultType":"complete","_meta":{"${SUBSCRIPTION}":${request.idText}}}`;
        answer.response(resultText(request.idText, result), {});
      }
    },
    stop: child.stop,
    kill: child.kill,
  };
}
