import type { JsonObject } from '#wire';
import type { LanguageModelV4GenerateResult, SharedV4Warning } from '@ai-sdk/provider';
import { listOf } from './json.ts';
import { annotationOf, imageOf, logprobsOf, reasoningDetail, toolCallOf } from './members.ts';
import { servedTier, toChatUsage, toFinish } from './usage.ts';

interface CompletionFacts {
  readonly modelId: string;
  readonly warnings: readonly SharedV4Warning[];
  readonly logprobs: boolean;
}

/** The reply of `doGenerate` as a chat completion. Results of tools that the vendor ran itself have no place in it. */
export function toCompletion(
  { content, finishReason, usage, providerMetadata, response }: LanguageModelV4GenerateResult,
  { modelId, warnings, logprobs }: CompletionFacts,
): JsonObject {
  let text = '';
  let reasoning = '';
  const details: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const images: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  for (const part of content)
    switch (part.type) {
      case 'text':
        text += part.text;
        break;
      case 'reasoning':
        reasoning += part.text;
        if (part.providerMetadata) details.push(reasoningDetail(details.length, part.text, part.providerMetadata));
        break;
      case 'tool-call':
        if (!part.providerExecuted) calls.push(toolCallOf(part));
        break;
      case 'file':
        images.push(...imageOf(part));
        break;
      case 'source':
        annotations.push(...annotationOf(part));
        break;
      default:
    }
  const claim = toChatUsage(usage);
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(images.length === 0 ? {} : { images }),
    ...(annotations.length === 0 ? {} : { annotations }),
  };
  const probabilities = logprobs ? logprobsOf(providerMetadata) : null;
  return {
    id: response?.id ?? 'chatcmpl-ai-sdk',
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model: modelId,
    choices: [
      {
        index: 0,
        message,
        ...toFinish(finishReason),
        ...(listOf(probabilities).length === 0 ? {} : { logprobs: { content: probabilities, refusal: null } }),
      },
    ],
    ...servedTier(providerMetadata),
    ...(claim === null ? {} : { usage: claim }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}
