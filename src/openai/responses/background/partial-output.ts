import { isObject } from '#wire';
import type { Json } from '../responses-schema.ts';

interface Partial {
  readonly item: Json;
  /** The text that has come of a message that has not ended. */
  readonly texts: string[];
  readonly hasEnded: boolean;
}

/** The output of a stream that has come until now. */
export class PartialOutput {
  readonly #items = new Map<unknown, Partial>();

  take(type: string, { output_index: place, item, delta }: Json): void {
    if (type === 'response.output_text.delta') {
      if (typeof delta === 'string') this.#items.get(place)?.texts.push(delta);
    } else if (type === 'response.output_item.done' && isObject(item))
      this.#items.set(place, { item, texts: [], hasEnded: true });
    else if (type === 'response.output_item.added' && isObject(item) && item['type'] === 'message')
      this.#items.set(place, { item, texts: [], hasEnded: false });
  }

  /** All items that have come. */
  all(): readonly Json[] {
    const inOrder = [...this.#items].sort(([one], [other]) => Number(one) - Number(other));
    return inOrder.flatMap(([, partial]) => (partial.hasEnded ? [partial.item] : cutMessage(partial)));
  }

  /**
   * A response that was cut, with the messages that its end does not have. A client that reads the stream has their
   * text. One that only polls gets it with the response, because it is charged.
   */
  addTo(response: Json): Json {
    const output = Array.isArray(response['output']) ? (response['output'] as readonly Json[]) : [];
    const told = new Set(output.map(({ id }) => id));
    const more = [...this.#items.values()].flatMap((partial) =>
      partial.hasEnded || told.has(partial.item['id']) ? [] : cutMessage(partial),
    );
    return more.length === 0 ? response : { ...response, output: [...output, ...more] };
  }
}

/** A message that has not ended; none if nothing of its text has come. */
function cutMessage({ item, texts }: Partial): readonly Json[] {
  if (texts.length === 0) return [];
  const content = [{ type: 'output_text', text: texts.join(''), annotations: [], logprobs: [] }];
  return [{ ...item, status: 'incomplete', content }];
}
