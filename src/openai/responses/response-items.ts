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

/* Finished output items of a response. */

export const messageItem = (id: string, text: string): Json => ({
  id,
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

export const reasoningItem = (id: string, text: string, { summary, seal }: ShownThinking): Json => ({
  id,
  type: 'reasoning',
  summary: summary ? [{ type: 'summary_text', text }] : [],
  ...(seal === null ? {} : { encrypted_content: seal(text) }),
});

/** `given`: the arguments that the model wrote. */
export function callItem(id: string, callId: string, short: string, given: string, registry: ToolRegistry): Json {
  const { name, namespace, custom } = registry.named(short);
  const common = { id, call_id: callId, name, ...(namespace === null ? {} : { namespace }), status: 'completed' };
  return custom
    ? { ...common, type: 'custom_tool_call', input: inputOf(given) }
    : { ...common, type: 'function_call', arguments: given === '' ? '{}' : given };
}

/** The text for a custom tool. If the model wrote no JSON, it wrote the text itself. */
export function inputOf(given: string): string {
  try {
    const content = (JSON.parse(given) as Json | null)?.[CONTENT];
    return typeof content === 'string' ? content : given;
  } catch {
    return given;
  }
}

/** Parses a text from the inside of its JSON string. */
export const textOf = (json: string): string => JSON.parse(`"${json}"`) as string;
