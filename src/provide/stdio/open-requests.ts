import { setMember, splice } from '#wire';
import { keyOf, metaOf, paramsOf, type Notification, type Request, type Response } from './json-rpc.ts';
import type { Reply } from './reply.ts';

interface Opened {
  readonly reply: Reply;
  /** Sees the response before the client and returns the HTTP status of the reply. */
  readonly answered: ((response: Response) => number) | undefined;
}

interface OpenRequest extends Opened {
  readonly idText: string;
  /** Made comparable by `keyOf`. */
  readonly token: string | null;
}

/** The unanswered requests of one client. */
export class OpenRequests {
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

  has({ value }: Request): boolean {
    return this.#open.has(keyOf(value['id'])!);
  }

  add(request: Request, of: Opened): void {
    const { value, idText } = request;
    this.#open.set(keyOf(value['id'])!, { ...of, idText, token: keyOf(metaOf(request)['progressToken']) });
  }

  /** Removes and returns the request with this id. Returns undefined if there is no such request. */
  take(id: unknown): OpenRequest | undefined {
    const key = keyOf(id) ?? '';
    const found = this.#open.get(key);
    this.#open.delete(key);
    return found;
  }

  /**
   * Removes and returns the request that a response answers, and the response with the id as the request has it. Some
   * servers write a numeric id as a string. Returns undefined if there is no such request.
   */
  takeAnswered(response: Response): { readonly asked: OpenRequest; readonly response: Response } | undefined {
    const { id } = response.value;
    const exact = this.take(id);
    if (exact) return { asked: exact, response };
    const asked = typeof id === 'string' && String(Number(id)) === id ? this.take(Number(id)) : undefined;
    if (!asked) return undefined;
    const text = splice(response.text, [setMember(response.text, 0, 'id', asked.idText)]);
    return { asked, response: { ...response, text } };
  }

  /** Whether the client still waits for any of them. */
  isWaiting(): boolean {
    return [...this.#open.values()].some(({ reply }) => reply.isOpen());
  }

  /**
   * Finds the reply that carries a message of the server. Progress goes to the request with its token. The server's
   * requests go to the newest request whose reply takes events. Everything else goes to the only open request, if there
   * is just one.
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
