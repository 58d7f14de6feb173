import { keyOf, metaOf, paramsOf, type Notification, type Request, type Response } from './json-rpc.ts';
import type { Reply } from './reply.ts';

export interface OpenRequest {
  readonly reply: Reply;
  /** Progress token, in a form that can be compared. */
  readonly token: string | null;
  /** Sees the response before the client, and gives the status of its reply. */
  readonly answered: ((response: Response) => number) | undefined;
}

/** The requests of one client that are not answered yet. */
export interface OpenRequests {
  readonly size: number;
  has(request: Request): boolean;
  add(request: Request, of: Pick<OpenRequest, 'reply' | 'answered'>): void;
  /** Removes and returns the request with this id; undefined where none has it. */
  take(id: unknown): OpenRequest | undefined;
  /** Whether the client waits for one of them. */
  isWaiting(): boolean;
  /**
   * The reply that carries a message of the server, where one does. Progress goes where it was asked for. The
   * server's requests go to the newest call that can carry them, and so does everything else while there is one call.
   */
  carrierOf(message: Notification | Request): Reply | undefined;
  breakAll(): void;
}

export function createOpenRequests(): OpenRequests {
  /** In the order in which they came. */
  const open = new Map<string, OpenRequest>();
  return {
    get size() {
      return open.size;
    },
    has: ({ value }) => open.has(keyOf(value['id'])!),
    add: (request, { reply, answered }) =>
      void open.set(keyOf(request.value['id'])!, { reply, token: keyOf(metaOf(request)['progressToken']), answered }),
    take(id) {
      const key = keyOf(id);
      const found = key === null ? undefined : open.get(key);
      if (found) open.delete(key!);
      return found;
    },
    isWaiting: () => [...open.values()].some(({ reply }) => reply.isOpen()),
    carrierOf(message) {
      const replies = [...open.values()].filter(({ reply }) => reply.takesEvents());
      if (message.kind === 'request') return replies.at(-1)?.reply;
      const token = message.method === 'notifications/progress' ? keyOf(paramsOf(message)['progressToken']) : null;
      const asked = token === null ? undefined : replies.find((one) => one.token === token);
      return (asked ?? (open.size === 1 ? replies[0] : undefined))?.reply;
    },
    breakAll() {
      for (const { reply } of open.values()) if (reply.isOpen()) reply.broken('upstream_broken');
      open.clear();
    },
  };
}
