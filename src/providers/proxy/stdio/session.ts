import type { ServerHttp2Stream } from 'node:http2';
import { errorText } from '#json-rpc/message';
import { removeAt, setMember, splice } from '#wire';
import type { StopTimes } from './child-process.ts';
import { createClientStream, writeWithin } from './client-stream.ts';
import {
  ERROR,
  keyOf,
  paramsOf,
  type RpcMessage,
  type Notification,
  type RpcRequest,
  type Response,
  metaOf,
} from './json-rpc.ts';
import { startMessageProcess, type ProcessOptions } from './message-process.ts';
import type { StdioReply } from './reply.ts';

/**
 * A server's process that belongs to one client. Messages pass unchanged in both directions. The session only chooses
 * the client's stream for each message of the server.
 */
export interface Session {
  /** Sends the client's request. `answered` sees the response before the client and returns the HTTP status. */
  ask(request: RpcRequest, reply: StdioReply, answered?: (response: Response) => number): void;
  /** Sends the client's notification or response. Returns false if the process doesn't accept it. */
  pass(message: Notification | Response): boolean;
  /** Takes the client's stream for messages that belong to no request. Returns false if the client has one already. */
  listen(stream: ServerHttp2Stream): boolean;
  /** Whether the client waits for a response or has a stream open. */
  readonly busy: () => boolean;
  /** Time of the last use, in monotonic milliseconds. */
  readonly usedAt: () => number;
  /** Ends the stream of `listen`, which has no end of its own. */
  drain(): void;
  /** Settles when the process has ended. By then every stream is closed. */
  readonly ended: Promise<string>;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

interface SessionOptions extends ProcessOptions {
  /** Timeout of a session without a stream and without requests. */
  readonly idleMs: number;
  /** Called when the session must be removed and stopped although its process runs. May be called more than once. */
  readonly over: (why: string) => void;
}

const ROOTS = 'roots/list';

/** The most requests that a client may have open at once, and the most of the server that wait for an answer. */
const REQUESTS_MAX = 1_000;

export function startSession(options: SessionOptions): Session {
  const { target, idleMs, over } = options;
  const requests = new OpenRequests();
  const client = createClientStream(over);
  /** The server's requests that the client has not answered yet, oldest first: ids as JSON text, by their keys. */
  const toAnswer = new Map<string, string>();
  let idle: NodeJS.Timeout | undefined;
  let dead = false;
  let usedAt = performance.now();

  const child = startMessageProcess(options, { take, onlyOpen: () => requests.onlyId });

  const busy = () => client.isAttached() || requests.isWaiting();

  /** Restarts the idle timer, unless the client waits or listens. */
  function touch(): void {
    clearTimeout(idle);
    usedAt = performance.now();
    if (!dead && !busy()) idle = setTimeout(over, idleMs, 'idle');
  }

  function take(message: RpcMessage): void {
    if (message.kind === 'response') return respond(message);
    if (message.kind === 'request') {
      // Roots name directories of this machine, so the client may not set them unless the file allows it.
      if (message.method === ROOTS && !target.roots)
        return void child.send(errorText(message.idText, { code: ERROR.methodNotFound, message: 'Method not found' }));
      expectAnswer(message);
    }
    if (message.kind === 'notification' && message.method === 'notifications/cancelled')
      toAnswer.delete(keyOf(paramsOf(message)['requestId']) ?? '');
    const reply = requests.carrierOf(message);
    if (reply) writeWithin(message, reply.waiting(), (text) => reply.event(text), over);
    else client.send(message);
  }

  /** Some clients never answer some requests. Beyond the maximum, the oldest request gets an error instead. */
  function expectAnswer({ value, idText }: RpcRequest): void {
    const [oldest] = toAnswer;
    if (oldest && toAnswer.size >= REQUESTS_MAX) {
      toAnswer.delete(oldest[0]);
      child.send(
        errorText(oldest[1], { code: ERROR.process, message: 'the client left too many requests unanswered' }),
      );
    }
    toAnswer.set(keyOf(value['id'])!, idText);
  }

  function respond(message: Response): void {
    const answered = requests.takeAnswered(message);
    // The request was cancelled, or there was no such request.
    if (!answered) return;
    const { request, response } = answered;
    const status = request.answered?.(response) ?? 200;
    if (request.reply.isOpen()) request.reply.response(response.text, status);
    else client.send(response);
  }

  function ask(request: RpcRequest, reply: StdioReply, answered?: (response: Response) => number): void {
    const refuse = (code: number, message: string, status: number) =>
      reply.response(errorText(request.idText, { code, message }), status);
    if (requests.has(request))
      return refuse(ERROR.invalidRequest, 'Invalid Request: another request with this id is running', 400);
    if (requests.size >= REQUESTS_MAX) return refuse(ERROR.process, 'too many requests at once in one session', 503);
    if (!child.send(target.roots ? request.text : withoutRoots(request))) return reply.broken('upstream_unreachable');
    requests.add(request, { reply, answered });
    clearTimeout(idle);
    reply.whenOver(touch);
    // If the client has no stream of its own, the server's requests can only be sent on this reply.
    if (!client.isAttached() && reply.takesEvents()) for (const text of client.takeRequests()) reply.event(text);
  }

  /**
   * Drops a response whose id isn't that of an open request of the server. The server could take it for the response to
   * another request.
   */
  const isUnasked = (message: Notification | Response) =>
    message.kind === 'response' && !toAnswer.delete(keyOf(message.value['id']) ?? '');

  const ended = child.ended.then((how) => {
    dead = true;
    clearTimeout(idle);
    requests.breakAll();
    client.breakOff();
    return how;
  });

  return {
    ask,
    pass(message) {
      if (isUnasked(message)) return true;
      if (!child.send(message.text)) return false;
      // The client doesn't wait for a cancelled request any longer, and most servers don't answer it.
      if (message.kind === 'notification' && message.method === 'notifications/cancelled')
        requests.take(paramsOf(message)['requestId'])?.reply.end();
      touch();
      return true;
    },
    listen(stream) {
      if (!client.attach(stream, touch)) return false;
      clearTimeout(idle);
      return true;
    },
    busy,
    usedAt: () => usedAt,
    drain: client.end,
    ended,
    async stop(times) {
      dead = true;
      clearTimeout(idle);
      client.end();
      return child.stop(times);
    },
    kill: child.kill,
  };
}

/** Returns the text of the client's request. `initialize` goes without its roots. */
function withoutRoots({ method, text }: RpcRequest): string {
  return method === 'initialize' ? removeAt(text, ['params', 'capabilities', 'roots']) : text;
}

interface OpenReply {
  readonly reply: StdioReply;
  /** Sees the response before the client and returns the HTTP status of the reply. */
  readonly answered: ((response: Response) => number) | undefined;
}

interface OpenRequest extends OpenReply {
  readonly idText: string;
  /** Made comparable by `keyOf`. */
  readonly token: string | null;
}

class OpenRequests {
  /** In order of arrival. */
  readonly #open = new Map<string, OpenRequest>();

  get size(): number {
    return this.#open.size;
  }

  /** The id of the only open request, as JSON text. null unless exactly one is open. */
  get onlyId(): string | null {
    const [first] = this.#open.values();
    return first && this.size === 1 ? first.idText : null;
  }

  has({ value }: RpcRequest): boolean {
    return this.#open.has(keyOf(value['id'])!);
  }

  add(request: RpcRequest, reply: OpenReply): void {
    const { value, idText } = request;
    this.#open.set(keyOf(value['id'])!, { ...reply, idText, token: keyOf(metaOf(request)['progressToken']) });
  }

  take(id: unknown): OpenRequest | undefined {
    const key = keyOf(id) ?? '';
    const request = this.#open.get(key);
    this.#open.delete(key);
    return request;
  }

  /**
   * Removes and returns the request that a response answers, and the response with the id as the request has it. Some
   * servers write a numeric id as a string. Returns undefined if there is no such request.
   */
  takeAnswered(response: Response): { readonly request: OpenRequest; readonly response: Response } | undefined {
    const { id } = response.value;
    const exact = this.take(id);
    if (exact) return { request: exact, response };
    const request = typeof id === 'string' && String(Number(id)) === id ? this.take(Number(id)) : undefined;
    if (!request) return undefined;
    const text = splice(response.text, [setMember(response.text, 0, 'id', request.idText)]);
    return { request, response: { ...response, text } };
  }

  isWaiting(): boolean {
    return [...this.#open.values()].some(({ reply }) => reply.isOpen());
  }

  /**
   * Finds the reply that carries a message of the server. Progress goes to the request with its token. The server's
   * requests go to the newest request whose reply takes events. Everything else goes to the only open request, if there
   * is just one.
   */
  carrierOf(message: Notification | RpcRequest): StdioReply | undefined {
    const replies = [...this.#open.values()].filter(({ reply }) => reply.takesEvents());
    if (message.kind === 'request') return replies.at(-1)?.reply;
    const token = message.method === 'notifications/progress' ? keyOf(paramsOf(message)['progressToken']) : null;
    const carrier = token === null ? undefined : replies.find((one) => one.token === token);
    return (carrier ?? (this.size === 1 ? replies[0] : undefined))?.reply;
  }

  breakAll(): void {
    for (const { reply } of this.#open.values()) if (reply.isOpen()) reply.broken('upstream_broken');
    this.#open.clear();
  }
}
