import { isWholeJson } from '../translated/json-progress.ts';
import type { Json } from './responses-schema.ts';
import type { ToolRegistry } from './tool-registry.ts';
import { CONTENT } from './tools.ts';

/** How a client is shown the thinking. */
export interface ShownThinking {
  /** The thinking is shown as a summary. */
  readonly summary: boolean;
  /** Seals the text; null if the client did not ask for sealed thinking. */
  readonly seal: ((text: string) => string) | null;
}

/** `incomplete`: the reply was cut inside the item. */
export type ItemStatus = 'completed' | 'incomplete';

/* Output items of a response that has ended. */

export const messageItem = (id: string, text: string, status: ItemStatus): Json => ({
  id,
  type: 'message',
  role: 'assistant',
  status,
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

export const reasoningItem = (
  id: string,
  text: string,
  { summary, seal }: ShownThinking,
  status: ItemStatus,
): Json => ({
  id,
  type: 'reasoning',
  ...(status === 'completed' ? {} : { status }),
  summary: summary ? [{ type: 'summary_text', text }] : [],
  ...(seal === null ? {} : { encrypted_content: seal(text) }),
});

/** `given`: the arguments that the model wrote. */
export function callItem(
  id: string,
  callId: string,
  short: string,
  given: string,
  registry: ToolRegistry,
  status: ItemStatus,
): Json {
  const { name, namespace, custom } = registry.named(short);
  const common = { id, call_id: callId, name, ...(namespace === null ? {} : { namespace }), status };
  const isCut = status === 'incomplete';
  return custom
    ? { ...common, type: 'custom_tool_call', input: isCut ? (contentOf(given) ?? '') : inputOf(given) }
    : { ...common, type: 'function_call', arguments: given === '' && !isCut ? '{}' : given };
}

/** The status of an item whose response has ended. */
export const statusOf = (isLast: boolean, ofResponse: string): ItemStatus =>
  isLast && ofResponse === 'incomplete' ? 'incomplete' : 'completed';

/**
 * The status of a call whose response has ended. In an incomplete response the last item is cut, and so are calls
 * whose arguments are not complete.
 */
export const statusOfCall = (given: string, isLast: boolean, ofResponse: string): ItemStatus =>
  ofResponse === 'incomplete' && (isLast || !isWholeJson(given)) ? 'incomplete' : 'completed';

/** The text for a custom tool. If the model wrote no JSON, it wrote the text itself. */
export const inputOf = (given: string): string => contentOf(given) ?? given;

/** The text in the JSON wrapper; null if the wrapper is missing or incomplete. */
function contentOf(given: string): string | null {
  try {
    const content = (JSON.parse(given) as Json | null)?.[CONTENT];
    return typeof content === 'string' ? content : null;
  } catch {
    return null;
  }
}

/** Parses a text from the inside of its JSON string. */
export const textOf = (json: string): string => JSON.parse(`"${json}"`) as string;
