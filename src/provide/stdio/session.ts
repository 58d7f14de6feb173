import type { ServerHttp2Stream } from 'node:http2';
import { errorText, removeAt } from '#wire';
import { breakOff } from '../own-reply.ts';
import { MESSAGE_BYTES_MAX, startChild, type Child, type StopTimes } from './child-process.ts';
import {
  ERROR,
  keyOf,
  metaOf,
  paramsOf,
  parseMessage,
  type Message,
  type Notification,
  type Request,
  type Response,
} from './json-rpc.ts';
import { GARBAGE_SHOWN, type PipeOptions } from './pipe.ts';
import { beginEvents, eventOf, EVENTS_BYTES_MAX, isOpen, type Reply } from './reply.ts';
import { createWaiting } from './waiting.ts';

/**
 * A server's process that belongs to one client. What either side says reaches the other character by character;
 * the session only decides which of the client's streams a message of the server goes to.
 */
export interface Session {
  /** Takes the client's request. `answered` sees the response first, and says with which status it goes out. */
  ask(request: Request, reply: Reply, answered?: (response: Response) => number): void;
  /** Takes the client's notification or response. False when the process does not take it. */
  pass(message: Notification | Response): boolean;
  /** Takes the client's own stream for what belongs to no request. False when it has one already. */
  listen(stream: ServerHttp2Stream): boolean;
  /** Its client waits for something, or listens. */
  readonly busy: () => boolean;
  /** When it was used last, in milliseconds that only go on. */
  readonly usedAt: () => number;
  /** Ends the stream that `listen` took, which would never end by itself. */
  drain(): void;
  /** Settles when the process has ended; every stream is over by then. */
  readonly ended: Promise<string>;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

export interface SessionOptions extends PipeOptions {
  /** How long a session lasts that has no stream. */
  readonly idleMs: number;
  /**
   * The session is of no more use though its process runs: it is to be forgotten and stopped. May come more than once.
   */
  readonly over: (why: string) => void;
}

const ROOTS = 'roots/list';

/** Requests that a client may have at once. */
const REQUESTS_MAX = 1_000;
/** What a client may leave unread of what must not be lost. */
const UNREAD_BYTES_MAX = 2 * MESSAGE_BYTES_MAX;

interface Asked {
  readonly reply: Reply;
  /** Progress token, to compare. */
  readonly token: string | null;
  readonly answered: ((response: Response) => number) | undefined;
}

export function startSession({ service, target, env, log, idleMs, over }: SessionOptions): Session {
  /** In the order in which they came. */
  const open = new Map<string, Asked>();
  /** Ids of what the server asks of the client. */
  const toAnswer = new Set<string>();
  const waiting = createWaiting({ notificationsMax: EVENTS_BYTES_MAX, restMax: UNREAD_BYTES_MAX });
  let own: ServerHttp2Stream | null = null;
  let idle: NodeJS.Timeout | undefined;
  let dead = false;
  let usedAt = performance.now();

  const child: Child = startChild({
    target,
    env,
    line: take,
    tooLong: () => log.warn({ service }, 'the tool wrote a line that is too long; it is passed over'),
    complaint: (text) => log.info({ service, text }, 'the tool says'),
  });

  /** Counts from now, unless the client is there. */
  const busy = () => own !== null || [...open.values()].some(({ reply }) => reply.isOpen());

  function touch(): void {
    clearTimeout(idle);
    usedAt = performance.now();
    if (!dead && !busy()) idle = setTimeout(over, idleMs, 'idle');
  }

  function take(line: string): void {
    const message = parseMessage(line);
    if (!message)
      return log.warn(
        { service, text: line.slice(0, GARBAGE_SHOWN) },
        'the tool wrote a line that is no JSON-RPC; it is passed over',
      );
    if (message.kind === 'response') return respond(message);
    if (message.kind === 'request') {
      // The directories are this machine's, so who may name them is not for the client to say.
      if (message.method === ROOTS && !target.roots)
        return void child.send(errorText(message.idText, { code: ERROR.methodNotFound, message: 'Method not found' }));
      toAnswer.add(keyOf(message.value['id'])!);
    }
    const reply = streamFor(message);
    if (reply) tell(message, reply.waiting(), (text) => reply.event(text));
    else toClient(message);
  }

  function respond(response: Response): void {
    const key = keyOf(response.value['id']);
    const asked = key === null ? undefined : open.get(key);
    // It was cancelled, or nobody asked.
    if (key === null || !asked) return;
    open.delete(key);
    const status = asked.answered?.(response) ?? 200;
    if (asked.reply.isOpen()) asked.reply.response(response.text, status);
    else toClient(response);
  }

  /**
   * Progress goes where it was asked for. What the server asks goes to the newest call that can carry it, and so
   * does all else while there is one call.
   */
  function streamFor(message: Notification | Request): Reply | undefined {
    const replies = [...open.values()].filter(({ reply }) => reply.takesEvents());
    if (message.kind === 'request') return replies.at(-1)?.reply;
    const token = message.method === 'notifications/progress' ? keyOf(paramsOf(message)['progressToken']) : null;
    const asked = token === null ? undefined : replies.find((one) => one.token === token);
    return (asked ?? (open.size === 1 ? replies[0] : undefined))?.reply;
  }

  function toClient(message: Message): void {
    if (own && isOpen(own)) tell(message, own.writableLength, (text) => own?.write(eventOf(text)));
    else if (!waiting.put(message)) over('the client does not take what the tool asks of it');
  }

  function tell({ kind, text }: Message, unread: number, write: (text: string) => void): void {
    if (kind === 'notification' && unread > EVENTS_BYTES_MAX) return;
    if (unread > UNREAD_BYTES_MAX) return over('the client does not read');
    write(text);
  }

  function ask(request: Request, reply: Reply, answered?: (response: Response) => number): void {
    const key = keyOf(request.value['id'])!;
    if (open.has(key))
      return reply.response(
        errorText(request.idText, {
          code: ERROR.invalidRequest,
          message: 'Invalid Request: another request with this id is running',
        }),
        400,
      );
    if (open.size >= REQUESTS_MAX)
      return reply.response(
        errorText(request.idText, { code: ERROR.process, message: 'too many requests at once in one session' }),
        503,
      );
    if (!child.send(target.roots ? request.text : withoutRoots(request))) return reply.broken('upstream_unreachable');
    open.set(key, { reply, token: keyOf(metaOf(request)['progressToken']), answered });
    clearTimeout(idle);
    reply.whenOver(touch);
    // A client without a stream of its own has none but this to be asked on.
    if (own === null && reply.takesEvents()) for (const text of waiting.takeRequests()) reply.event(text);
  }

  /** The client does not wait for this any more, and most servers do not answer it. */
  function forget(cancelled: Notification): void {
    const key = keyOf(paramsOf(cancelled)['requestId']);
    const asked = key === null ? undefined : open.get(key);
    if (key === null || !asked) return;
    open.delete(key);
    asked.reply.end();
  }

  const drain = () => {
    const stream = own;
    own = null;
    if (stream && isOpen(stream)) stream.end();
  };

  const ended = child.ended.then((how) => {
    dead = true;
    clearTimeout(idle);
    for (const { reply } of open.values()) if (reply.isOpen()) reply.broken('upstream_broken');
    open.clear();
    if (own) breakOff(own);
    own = null;
    return how;
  });

  return {
    ask,
    pass(message) {
      // An answer to what it was not asked could be taken for one to what it was not to be asked.
      if (message.kind === 'response' && !toAnswer.delete(keyOf(message.value['id']) ?? '')) return true;
      if (!child.send(message.text)) return false;
      if (message.kind === 'notification' && message.method === 'notifications/cancelled') forget(message);
      touch();
      return true;
    },
    listen(stream) {
      if (own) return false;
      own = stream;
      clearTimeout(idle);
      stream.on('close', () => {
        if (own === stream) own = null;
        touch();
      });
      beginEvents(stream);
      for (const text of waiting.takeAll()) stream.write(eventOf(text));
      return true;
    },
    busy,
    usedAt: () => usedAt,
    drain,
    ended,
    async stop(times) {
      dead = true;
      clearTimeout(idle);
      drain();
      return child.stop(times);
    },
    kill: child.kill,
  };
}

/** What a client says of itself at the beginning, without roots. */
function withoutRoots({ method, text }: Request): string {
  return method === 'initialize' ? removeAt(text, ['params', 'capabilities', 'roots']) : text;
}
