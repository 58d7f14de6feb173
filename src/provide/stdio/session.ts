import type { ServerHttp2Stream } from 'node:http2';
import { errorText, removeAt } from '#wire';
import type { StopTimes } from './child-process.ts';
import { createClientStream, writeWithin } from './client-stream.ts';
import { ERROR, keyOf, paramsOf, type Message, type Notification, type Request, type Response } from './json-rpc.ts';
import { startMessageProcess, type ProcessOptions } from './message-process.ts';
import { OpenRequests } from './open-requests.ts';
import type { Reply } from './reply.ts';

/**
 * A server's process that belongs to one client. Messages pass unchanged in both directions; the session only
 * decides which of the client's streams a message of the server goes to.
 */
export interface Session {
  /** Takes the client's request. `answered` sees the response first, and says with which status it goes out. */
  ask(request: Request, reply: Reply, answered?: (response: Response) => number): void;
  /** Takes the client's notification or response. False when the process does not take it. */
  pass(message: Notification | Response): boolean;
  /** Takes the client's stream for messages that belong to no request. False when it has one already. */
  listen(stream: ServerHttp2Stream): boolean;
  /** Whether its client waits for a response, or listens. */
  readonly busy: () => boolean;
  /** The time of its last use, in monotonic milliseconds. */
  readonly usedAt: () => number;
  /** Ends the stream that `listen` took, which would never end by itself. */
  drain(): void;
  /** Settles when the process has ended; every stream is over by then. */
  readonly ended: Promise<string>;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

interface SessionOptions extends ProcessOptions {
  /** A session without a stream and without requests ends after this time. */
  readonly idleMs: number;
  /** The session is to be forgotten and stopped, though its process runs. May be called more than once. */
  readonly over: (why: string) => void;
}

const ROOTS = 'roots/list';

/** Requests that a client may have at once. */
const REQUESTS_MAX = 1_000;

export function startSession(options: SessionOptions): Session {
  const { target, idleMs, over } = options;
  const requests = new OpenRequests();
  const client = createClientStream(over);
  /** Ids of the server's requests that the client has not answered. */
  const toAnswer = new Set<string>();
  let idle: NodeJS.Timeout | undefined;
  let dead = false;
  let usedAt = performance.now();

  const child = startMessageProcess(options, take);

  const busy = () => client.isAttached() || requests.isWaiting();

  /** The idle time counts from now, unless the client is there. */
  function touch(): void {
    clearTimeout(idle);
    usedAt = performance.now();
    if (!dead && !busy()) idle = setTimeout(over, idleMs, 'idle');
  }

  function take(message: Message): void {
    if (message.kind === 'response') return respond(message);
    if (message.kind === 'request') {
      // The directories are this machine's, so the client does not decide which ones are named.
      if (message.method === ROOTS && !target.roots)
        return void child.send(errorText(message.idText, { code: ERROR.methodNotFound, message: 'Method not found' }));
      toAnswer.add(keyOf(message.value['id'])!);
    }
    const reply = requests.carrierOf(message);
    if (reply) writeWithin(message, reply.waiting(), (text) => reply.event(text), over);
    else client.send(message);
  }

  function respond(response: Response): void {
    const asked = requests.take(response.value['id']);
    // It was cancelled, or nobody asked.
    if (!asked) return;
    const status = asked.answered?.(response) ?? 200;
    if (asked.reply.isOpen()) asked.reply.response(response.text, status);
    else client.send(response);
  }

  function ask(request: Request, reply: Reply, answered?: (response: Response) => number): void {
    const refuse = (code: number, message: string, status: number) =>
      reply.response(errorText(request.idText, { code, message }), status);
    if (requests.has(request))
      return refuse(ERROR.invalidRequest, 'Invalid Request: another request with this id is running', 400);
    if (requests.size >= REQUESTS_MAX) return refuse(ERROR.process, 'too many requests at once in one session', 503);
    if (!child.send(target.roots ? request.text : withoutRoots(request))) return reply.broken('upstream_unreachable');
    requests.add(request, { reply, answered });
    clearTimeout(idle);
    reply.whenOver(touch);
    // A client without a stream of its own can only be asked on this reply.
    if (!client.isAttached() && reply.takesEvents()) for (const text of client.takeRequests()) reply.event(text);
  }

  /**
   * Leaves a response to another id than the server asked with unsent: it could be taken for one to a refused request.
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
      // The client does not wait for a cancelled request any more, and most servers do not answer it.
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

/** The client's \`initialize\` without its roots. */
function withoutRoots({ method, text }: Request): string {
  return method === 'initialize' ? removeAt(text, ['params', 'capabilities', 'roots']) : text;
}
