import { isObject } from '#wire';
import type { Json } from '../responses-schema.ts';

/**
 * Messages of a stream that have not ended. A client that reads the stream has their text. One that only polls gets it
 * with the response, because it is charged.
 */
export class UnfinishedMessages {
  readonly #messages = new Map<unknown, { readonly item: Json; readonly texts: string[] }>();

  take(type: string, { output_index: place, item, delta }: Json): void {
    if (type === 'response.output_text.delta') {
      if (typeof delta === 'string') this.#messages.get(place)?.texts.push(delta);
    } else if (type === 'response.output_item.done') this.#messages.delete(place);
    else if (type === 'response.output_item.added' && isObject(item) && item['type'] === 'message')
      this.#messages.set(place, { item, texts: [] });
  }

  /** A response that was cut, with the messages that its end does not have. */
  addTo(response: Json): Json {
    const output = Array.isArray(response['output']) ? (response['output'] as readonly Json[]) : [];
    const told = new Set(output.map(({ id }) => id));
    const more = [...this.#messages.values()].flatMap(({ item, texts }) => {
      if (told.has(item['id']) || texts.length === 0) return [];
      const content = [{ type: 'output_text', text: texts.join(''), annotations: [], logprobs: [] }];
      return [{ ...item, status: 'incomplete', content }];
    });
    return more.length === 0 ? response : { ...response, output: [...output, ...more] };
  }
}
