import { keyOf, metaOf, paramsOf, type Notification, type Request, type Response } from './json-rpc.ts';
import type { Reply } from './reply.ts';

interface OpenRequest {
  readonly reply: Reply;
  /** Sees the response before the client, and gives the status of its reply. */
  readonly answered: ((response: Response) => number) | undefined;
}

/** The requests of one client that are not answered yet. */
export class OpenRequests {
  /** In the order in which they came; progress tokens in a form that can be compared. */
  readonly #open = new Map<string, OpenRequest & { readonly token: string | null }>();

  get size(): number {
    return this.#open.size;
  }

  has({ value }: Request): boolean {
    return this.#open.has(keyOf(value['id'])!);
  }

  add(request: Request, of: OpenRequest): void {
    this.#open.set(keyOf(request.value['id'])!, { ...of, token: keyOf(metaOf(request)['progressToken']) });
  }

  /** Removes and returns the request with this id; undefined where none has it. */
  take(id: unknown): OpenRequest | undefined {
    const key = keyOf(id) ?? '';
    const found = this.#open.get(key);
    this.#open.delete(key);
    return found;
  }

  /** Whether the client waits for one of them. */
  isWaiting(): boolean {
    return [...this.#open.values()].some(({ reply }) => reply.isOpen());
  }

  /**
   * The reply that carries a message of the server, where one does. Progress goes where it was asked for. The
   * server's requests go to the newest call that can carry them, and so does everything else while there is one call.
   */
  carrierOf(message: Notification | Request): Reply | undefined {
    const replies = [...this.#open.values()].filter(({ reply }) => reply.takesEvents());
    if (message.kind === 'request') return replies.at(-1)?.reply;
    const token = message.method === 'notifications/progress' ? keyOf(paramsOf(message)['progressToken']) : null;
    const asked = token === null ? undefined : replies.find((one) => one.token === token);
    return (asked ?? (this.size === 1 ? replies[0] : undefined))?.reply;
  }

  breakAll(): void {
    for (const { reply } of this.#open.values()) if (reply.isOpen()) reply.broken('upstream_broken');
    this.#open.clear();
  }
}
