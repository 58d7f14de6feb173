import type { JsonObject } from '#wire';
import type {
  LanguageModelV4File,
  LanguageModelV4Source,
  LanguageModelV4ToolCall,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { isRecord, listOf } from './json.ts';
import { METADATA } from './prompt.ts';

/* Parts of a reply as members of a message of the chat API. */

/**
 * Thinking with what its vendor wants back, such as a signature. The gateway keeps such details for clients of other
 * wires, and a chat client sends them back as they are.
 */
export const reasoningDetail = (index: number, text: string, metadata: SharedV4ProviderMetadata): JsonObject => ({
  type: 'reasoning.text',
  index,
  text,
  [METADATA]: metadata,
});

/** The member of a tool call with what its vendor wants back, such as Gemini's signature of a thought. */
export const extraContent = (metadata: SharedV4ProviderMetadata | undefined): JsonObject =>
  metadata === undefined ? {} : { extra_content: { [METADATA]: metadata } };

export const toolCallOf = ({ toolCallId, toolName, input, providerMetadata }: LanguageModelV4ToolCall): JsonObject => ({
  id: toolCallId,
  type: 'function',
  function: { name: toolName, arguments: input },
  ...extraContent(providerMetadata),
});

/** An image as OpenRouter's form of chat has it; nothing for a file of another kind. */
export function imageOf({ mediaType, data }: LanguageModelV4File): readonly JsonObject[] {
  if (!/^image(?:\/|$)/.test(mediaType)) return [];
  const type = mediaType.includes('/') ? mediaType : 'image/png';
  const url = data.type === 'url' ? data.url.href : `data:${type};base64,${base64Of(data.data)}`;
  return [{ type: 'image_url', image_url: { url } }];
}

export const base64Of = (data: string | Uint8Array): string =>
  typeof data === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');

export function annotationOf(source: LanguageModelV4Source): readonly JsonObject[] {
  if (source.sourceType !== 'url') return [];
  const { url, title = '' } = source;
  return [{ type: 'url_citation', url_citation: { url, title, start_index: 0, end_index: 0 } }];
}

/** Log probabilities of the tokens. OpenAI's packages have a list for each text of the reply, in the form of chat. */
export function logprobsOf(metadata: SharedV4ProviderMetadata | undefined): readonly unknown[] {
  const own = Object.values(metadata ?? {}).find((member) => isRecord(member) && Array.isArray(member['logprobs']));
  return listOf(isRecord(own) ? own['logprobs'] : null).flat();
}
