import { expect, test } from 'vitest';
import { createGeminiDecoder, GEMINI_PASSTHROUGH } from '../../../src/openai/gemini/passthrough.ts';
import { createMessagesDecoder } from '../../../src/openai/messages/passthrough.ts';

// The usage that a native reply claims, in the terms of chat.

test('tokens of the tools that Gemini runs are a part of the prompt, and its thoughts one of the completion', () => {
  const decoder = createGeminiDecoder('a/model');
  const counts = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 20 };
  decoder.takeUsage({ ...counts, toolUsePromptTokenCount: 5, thoughtsTokenCount: 2 });
  expect(decoder.claim).toMatchObject({ prompt_tokens: 15, completion_tokens: 5, total_tokens: 20 });
});

test('a second end of a message lowers no count of the first', () => {
  const decoder = createMessagesDecoder('a/model');
  const take = (type: string, members: object) => decoder.take(type, { type, ...members }, JSON.stringify(members));
  take('message_start', { message: { usage: { input_tokens: 10, output_tokens: 1 } } });
  take('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 50 } });
  take('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 20 } });
  expect(decoder.claim).toMatchObject({ prompt_tokens: 10, completion_tokens: 50 });
});

test('the thinking that Gemini is asked for leaves a token of the cap for the answer', () => {
  const config = { thinkingConfig: { thinkingBudget: 1_000 } };
  const { sent } = GEMINI_PASSTHROUGH.capped!({ generationConfig: config }, { tokens: 100, isSet: true }, () => false);
  expect(JSON.parse(sent['generationConfig']!)).toEqual({
    thinkingConfig: { thinkingBudget: 99 },
    maxOutputTokens: 100,
  });
});
