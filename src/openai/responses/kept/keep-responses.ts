import type { ReplySink } from '#http';
import { isObject, type JsonObject } from '#wire';
import type { Caller } from '#accounts';
import { isStorable, ownerOf } from '#tasks';
import type { KeptResponses } from '#kept-responses';
import type { StartedChat } from '../../chat/reply/chat-reply.ts';
import type { ReplyHeaders } from '../../chat/request/altered-headers.ts';
import type { ResponsesBody } from '../schema.ts';
import { itemsOf } from './conversations.ts';
import { responseIdOf, responseOfItem, withIds } from './kept-ids.ts';

interface KeptRequest {
  readonly caller: Caller;
  readonly requestBody: ResponsesBody;
}

/** Keeps the response of a call, with the items of its request, when its reply is written. */
export function keepsResponse(keptResponses: KeptResponses, { caller, requestBody }: KeptRequest) {
  return async ({ id: callId, call, about }: StartedChat, client: ReplySink, onError: (error: unknown) => void) => {
    const place = { ...ownerOf(caller), id: responseIdOf(callId), service: call?.service ?? about.model };
    const { id } = place;
    const keep = async (response: JsonObject): Promise<boolean> => {
      if (response['id'] !== id) return false;
      const input = withIds(itemsOf(requestBody.input), id);
      const output = Array.isArray(response['output']) ? (response['output'] as readonly JsonObject[]) : [];
      try {
        return await keptResponses.put({
          ...place,
          previous: requestBody.previous_response_id ?? null,
          input: JSON.stringify(input),
          response: JSON.stringify(response),
          items: namesOf([...input, ...output], id),
        });
      } catch (error) {
        onError(error);
        return false;
      }
    };
    const drop = () => keptResponses.drop(place).catch(onError);
    // Without a row a restart could not tell that something was charged and not kept. A free call is not charged.
    const isFree = call?.candidates.every(({ estimate }) => estimate === 0n) === true;
    if (!isFree) await keptResponses.expect(place).catch(onError);
    return new KeepingSink(client, keep, drop);
  };
}

/** The ids of items that do not contain the id of their response. A reference names an item of another response. */
export const namesOf = (items: readonly JsonObject[], responseId: string): readonly string[] =>
  [...new Set(items.filter(({ type }) => type !== 'item_reference').map(({ id }) => id))].filter(
    (id) => typeof id === 'string' && responseOfItem(id) !== responseId && isStorable(id),
  ) as readonly string[];

/** Keeps a response. Resolves with false if it is not kept. Does not reject. */
type Keep = (response: JsonObject) => Promise<boolean>;

/**
 * Passes the reply to a client, but holds the last bytes back until the response is kept. So a client that has seen
 * the end can refer to the response. If the response is not kept, its end says so.
 */
class KeepingSink implements ReplySink {
  readonly #client: ReplySink;
  readonly #keep: Keep;
  readonly #drop: () => Promise<void>;
  /** The head of a reply in one piece. It has the length, which changes if the response is not kept. */
  #head: { readonly status: number; readonly headers: ReplyHeaders } | null = null;
  #last: { readonly text: string; readonly isFailure: boolean } | null = null;

  /** `drop`: called if nothing is kept. Does not reject. */
  constructor(client: ReplySink, keep: Keep, drop: () => Promise<void>) {
    this.#client = client;
    this.#keep = keep;
    this.#drop = drop;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  head(status: number, headers: ReplyHeaders): void {
    if ('content-length' in headers) this.#head = { status, headers };
    else this.#client.head(status, headers);
  }

  flush(): void {
    if (this.#head === null) this.#client.flush();
  }

  write(bytes: Uint8Array): boolean {
    return this.#client.write(bytes);
  }

  drained(): Promise<void> {
    return this.#client.drained();
  }

  end(bytes: Uint8Array | string): void {
    this.#last = { text: textOf(bytes), isFailure: false };
  }

  fail(bytes: Uint8Array): void {
    this.#last = { text: textOf(bytes), isFailure: true };
  }

  get sink(): ReplySink {
    return this;
  }

  /** Keeps the response, and writes the end of the reply. To be called also if none was written. */
  async finish(): Promise<void> {
    const response = this.#last === null ? null : responseIn(this.#last.text);
    const isKept = response !== null && (await this.#keep(response));
    if (!isKept) await this.#drop();
    if (this.#last === null) return;
    const { text, isFailure } = this.#last;
    const storedText = isKept || response === null ? text : unkept(text);
    if (this.#client.closed) return;
    if (this.#head !== null) {
      const { status, headers } = this.#head;
      this.#client.head(status, { ...headers, 'content-length': Buffer.byteLength(storedText) });
    }
    if (isFailure) this.#client.fail(Buffer.from(storedText));
    else this.#client.end(storedText);
  }
}

const textOf = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string' ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

const DATA = 'data: ';

/** The place at which the last JSON object of a reply begins: its last event, or all of it. */
function lastObject(text: string): number {
  const event = text.lastIndexOf(`\n${DATA}`);
  return event === -1 ? (text.startsWith(DATA) ? DATA.length : 0) : event + 1 + DATA.length;
}

/** The response at the end of a reply; null if the end is something else, such as an error. */
function responseIn(text: string): JsonObject | null {
  let value: unknown;
  try {
    value = JSON.parse(text.slice(lastObject(text)));
  } catch {
    return null;
  }
  const response = isObject(value) && isObject(value['response']) ? value['response'] : value;
  return isObject(response) && response['object'] === 'response' && typeof response['id'] === 'string'
    ? response
    : null;
}

/** The end of a reply whose response says that it is not kept. */
function unkept(text: string): string {
  const at = lastObject(text);
  const value = JSON.parse(text.slice(at)) as JsonObject;
  const { response } = value;
  const responseText = isObject(response)
    ? `${JSON.stringify({ ...value, response: { ...response, store: false } })}\n\n`
    : JSON.stringify({ ...value, store: false });
  return text.slice(0, at) + responseText;
}
