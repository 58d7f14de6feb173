import { isObject } from '#wire';

/*
 * Mistral's reasoning models, and servers like them, write `content` as a list of parts, with their thinking among
 * them. Clients of the chat API read a text there. So the thinking becomes `reasoning_content`, as of other models, and
 * `reasoning_details` with a format of their own, from which the list is made again when the message comes back to the
 * same model.
 */

const FORMAT = 'content-parts-v1';

/** Brings a message or a delta of a model, whose content is a list, into the usual form, in place. */
export function withoutList(message: Record<string, unknown>, model: string): void {
  const { content, images } = message;
  if (!Array.isArray(content)) return;
  let text = '';
  let thinking = '';
  const details: Record<string, unknown>[] = [];
  const pictures: unknown[] = [];
  for (const part of content as readonly unknown[]) {
    if (typeof part === 'string') text += part;
    if (!isObject(part)) continue;
    const { type, thinking: thought, ...more } = part;
    if (type === 'thinking') {
      const words = textOf(thought);
      thinking += words;
      details.push({ ...more, type: 'reasoning.text', text: words, format: FORMAT, model, index: 0 });
    } else if (type === 'redacted_thinking')
      details.push({ ...more, type: 'reasoning.encrypted', format: FORMAT, model });
    else if (typeof part['text'] === 'string') text += part['text'];
    else if (isObject(part['image_url'])) pictures.push(part);
  }
  message['content'] = text;
  if (pictures.length > 0) message['images'] = [...(Array.isArray(images) ? (images as unknown[]) : []), ...pictures];
  if (details.length === 0) return;
  if (thinking !== '') message['reasoning_content'] ??= thinking;
  const { reasoning_details: before } = message;
  message['reasoning_details'] = [...(Array.isArray(before) ? (before as unknown[]) : []), ...details];
}

/** The text of a thinking part: a string, or a list of parts with texts. */
function textOf(thought: unknown): string {
  if (typeof thought === 'string') return thought;
  if (!Array.isArray(thought)) return '';
  return thought
    .map((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}

const isOfList = (detail: unknown): detail is Record<string, unknown> =>
  isObject(detail) && detail['format'] === FORMAT;

/**
 * The messages with the lists that the model wrote. Its API refuses the members that took their place. Returns the same
 * array if no message had one.
 */
export function withLists<M extends Readonly<Record<string, unknown>>>(
  messages: readonly M[],
  model: string,
): readonly M[] {
  const hasList = ({ reasoning_details: details }: M) => Array.isArray(details) && details.some(isOfList);
  return messages.some(hasList)
    ? messages.map((message) => (hasList(message) ? listed(message, model) : message))
    : messages;
}

function listed<M extends Readonly<Record<string, unknown>>>(message: M, model: string): M {
  const { reasoning_details: details, ...others } = message;
  const lists = (details as readonly unknown[]).filter(isOfList);
  // Other models do not know such lists.
  if (lists.some((list) => list['model'] !== model)) return others as unknown as M;
  const { reasoning_content: _, reasoning: __, content, ...rest } = others;
  const after =
    typeof content === 'string' && content !== ''
      ? [{ type: 'text', text: content }]
      : Array.isArray(content)
        ? content
        : [];
  const before = lists.map(({ type, text, format: _format, model: _model, index: _index, ...more }) =>
    type === 'reasoning.encrypted'
      ? { ...more, type: 'redacted_thinking' }
      : { ...more, type: 'thinking', thinking: [{ type: 'text', text }] },
  );
  return { ...rest, content: [...before, ...(after as readonly unknown[])] } as unknown as M;
}
