import type { MoreMemory } from '#http';
import type { JsonObject } from '#wire';
import { asSent, itemsOf } from '../kept/conversations.ts';
import type { ResponsesBody } from '../schema.ts';

/** A conversation up to a response. */
export interface RememberedResponse {
  /** The kept response that comes before `items`; null for none. */
  readonly previous: string | null;
  /** The items of the requests and the answers, as the inside of a JSON array. */
  readonly items: string;
}

/** The latest responses, so that a client that made a mistake can go on from the one before. */
const RESPONSES_MAX = 8;

/** The responses that are not kept, as a connection remembers them. */
export class RememberedResponses {
  readonly #memory: Pick<MoreMemory, 'becomes' | 'release'>;
  readonly #bytesMax: number;
  readonly #responses = new Map<string, RememberedResponse & { readonly bytes: number }>();
  #bytes = 0;

  /** `bytesMax`: of all of them, and of the largest request that could continue one. */
  constructor(memory: Pick<MoreMemory, 'becomes' | 'release'>, bytesMax: number) {
    this.#memory = memory;
    this.#bytesMax = bytesMax;
  }

  find(id: unknown): RememberedResponse | undefined {
    return typeof id === 'string' ? this.#responses.get(id) : undefined;
  }

  /** Returns false without room for it. */
  add(id: string, response: RememberedResponse): boolean {
    const bytes = Buffer.byteLength(response.items);
    if (bytes > this.#bytesMax) return false;
    this.#responses.set(id, { ...response, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#responses) {
      if (this.#bytes <= this.#bytesMax && this.#responses.size <= RESPONSES_MAX) break;
      this.#responses.delete(oldest);
      this.#bytes -= freed;
    }
    try {
      this.#memory.becomes(this.#bytes);
      return true;
    } catch {
      this.#responses.clear();
      this.#bytes = 0;
      this.#memory.becomes(0);
      return false;
    }
  }

  release(): void {
    this.#responses.clear();
    this.#memory.release();
  }
}

/** The items of a request, as the inside of a JSON array. They are a history, so messages and calls need no ids. */
export const ownItems = (input: ResponsesBody['input']): string => inside(itemsOf(input));

export const inside = (items: readonly JsonObject[]): string =>
  items.map((item) => JSON.stringify(asSent(item))).join(',');

export const joined = (...lists: readonly string[]): string => lists.filter((list) => list !== '').join(',');
