import { errorText, resultText } from '#json-rpc/message';
import { removeAt, replaceAt, spanAt, type JsonObject } from '#wire';
import type { StopTimes } from './child-process.ts';
import { CAPABILITIES, envelopeOf, type OwnMessages } from './era.ts';
import { ERROR, metaOf, paramsOf, type RpcMessage, type Notification, type RpcRequest } from './json-rpc.ts';
import { startMessageProcess, type ProcessOptions } from './message-process.ts';

/** Callbacks for the answer to one request. After any of them except `notification`, no more are called. */
interface ResponseCallbacks {
  /** A notification for this request, with the client's own progress token or subscription id. */
  notification(text: string): void;
  /** The response, with the client's own request id. */
  response(text: string, value: JsonObject): void;
  /** There will be no response, and this isn't an error. */
  end(): void;
  /** The process ended before the response. */
  broken(): void;
}

/** One run of an MCP server's process. Many clients send their requests through its one pipe. */
export interface Pipe extends OwnMessages {
  /** Settles with a text that says how the process ended. By then `broken` was called for every open request. */
  readonly ended: Promise<string>;
  /** Sends a request under a new id. Returns a function that cancels it, or null if the process doesn't accept it. */
  ask(request: RpcRequest, answer: ResponseCallbacks): (() => void) | null;
  pass(notification: Notification): void;
  /** Ends the subscriptions, which have no end of their own. */
  drain(): void;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

const ID = ['id'];
const TOKEN = ['params', '_meta', 'progressToken'];
const TOKEN_BACK = ['params', 'progressToken'];
/** Roots name directories of this machine, so clients may not set them unless the file allows it. */
const ROOTS = ['params', '_meta', CAPABILITIES, 'roots'];
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const LISTEN = 'subscriptions/listen';

interface PipeRequest {
  readonly request: RpcRequest;
  readonly answer: ResponseCallbacks;
  /** JSON text of the client's progress token. null for a request without one. */
  readonly token: string | null;
}

const onlyKey = (open: ReadonlyMap<number, unknown>): string | null =>
  open.size === 1 ? String([...open.keys()][0]) : null;

/** Starts a server's process that many clients share. */
export function openPipe(options: ProcessOptions): Pipe {
  const { target } = options;
  const open = new Map<number, PipeRequest>();
  let lastId = 0;

  const child = startMessageProcess(options, { take, onlyOpen: () => onlyKey(open) });

  function take(message: RpcMessage): void {
    if (message.kind === 'notification') return passOn(message);
    if (message.kind === 'request') return answerServer(message);
    const id = Number(message.value['id']);
    const request = open.get(id);
    // A server may answer a request that was cancelled.
    if (!request) return;
    open.delete(id);
    const text = replaceAt(message.text, ID, request.request.idText);
    request.answer.response(
      request.request.method === LISTEN
        ? replaceAt(text, ['result', '_meta', SUBSCRIPTION], request.request.idText)
        : text,
      message.value,
    );
  }

  /** Refuses the server's requests except `ping`. They are meant for a single client, but this pipe has many. */
  function answerServer({ idText, method }: RpcRequest): void {
    child.send(
      method === 'ping'
        ? resultText(idText, '{}')
        : errorText(idText, { code: ERROR.methodNotFound, message: 'Method not found' }),
    );
  }

  /**
   * Passes progress and subscription notifications to the client that asked for them. Other notifications are dropped,
   * because they could concern any client's request.
   */
  function passOn(notification: Notification): void {
    const params = paramsOf(notification);
    if (notification.method === 'notifications/progress') {
      const request = open.get(Number(params['progressToken']));
      if (request?.token) request.answer.notification(replaceAt(notification.text, TOKEN_BACK, request.token));
      return;
    }
    if (notification.method === 'notifications/cancelled') {
      const id = Number(params['requestId']);
      const request = open.get(id);
      // With this a server ends a subscription. In a legacy server's notification the id is one of the server's own
      // requests, not of the client's.
      if (request?.request.method !== LISTEN || !open.delete(id)) return;
      return request.answer.end();
    }
    const listener = open.get(Number(metaOf(notification)[SUBSCRIPTION]));
    if (listener?.request.method === LISTEN)
      listener.answer.notification(
        replaceAt(notification.text, ['params', '_meta', SUBSCRIPTION], listener.request.idText),
      );
  }

  function ask(request: RpcRequest, answer: ResponseCallbacks): (() => void) | null {
    const id = ++lastId;
    const span = spanAt(request.text, TOKEN);
    const token = span && request.text.slice(span.start, span.end);
    // Clients choose their own tokens, so two clients may have the same token. The request's id replaces it.
    const requestText = target.roots ? request.text : removeAt(request.text, ROOTS);
    const text = replaceAt(requestText, ID, String(id));
    if (!child.send(token === null ? text : replaceAt(text, TOKEN, String(id)))) return null;
    open.set(id, { request, answer, token });
    return () => {
      if (open.delete(id)) cancel(id, request, 'the client left');
    };
  }

  /**
   * The cancellation carries the `_meta` of its request. A modern server might take a client without it for a legacy
   * client.
   */
  function cancel(id: number, request: RpcRequest, reason: string): void {
    const meta = envelopeOf(request);
    tell('notifications/cancelled', { ...(meta ? { _meta: meta } : {}), requestId: id, reason });
  }

  const tell = (method: string, params?: JsonObject) =>
    void child.send(JSON.stringify({ jsonrpc: '2.0', method, params }));

  function query(method: string, params?: JsonObject): Promise<JsonObject | null> {
    const { promise, resolve } = Promise.withResolvers<JsonObject | null>();
    const value = { jsonrpc: '2.0', id: 0, method, params };
    const gone = () => resolve(null);
    const answer: ResponseCallbacks = {
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
