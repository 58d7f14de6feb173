import type { MatchLogic } from '@pydantic/genai-prices';
import { expect, it } from 'vitest';
import { isCloseMatch } from '../../../src/providers/list-prices/price-match.ts';

const close = (model: string, match: MatchLogic, id = 'another') => isCloseMatch(model, { id, match, prices: {} });

it.each<[string, MatchLogic]>([
  ['claude-sonnet-5-20260901', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-5-latest', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-5', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-4-20250514', { starts_with: 'claude-sonnet-4-2025' }],
  ['gemini-2.0-flash-001', { contains: 'gemini-2.0-flash-0' }],
  ['gemini-3-pro-preview-05-20', { starts_with: 'gemini-3-pro' }],
  ['gpt-5-nano-2025-08-07', { starts_with: 'gpt-5-nano-' }],
  ['us.anthropic.claude-3-haiku-20240307-v1:0', { contains: 'claude-3-haiku-20240307' }],
  ['meta-llama/llama-4-scout', { ends_with: 'llama-4-scout' }],
  ['GPT-5', { equals: 'gpt-5' }],
  ['gpt-6-2026-01-01', { regex: '^gpt-6-\\d{4}-\\d{2}-\\d{2}$' }],
  ['gemini-2.5-pro', { and: [{ starts_with: 'gemini-2.5-pro' }, { regex: '^(?!.*-tts$)' }] }],
])('%s is a version of what the list has', (model, match) => {
  expect(close(model, match)).toBe(true);
  expect(close(model, { or: [{ equals: 'x' }, match] })).toBe(true);
});

it.each<[string, MatchLogic]>([
  ['claude-sonnet-5-5', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-5.5', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-5-fast', { starts_with: 'claude-sonnet-5' }],
  ['claude-sonnet-51', { starts_with: 'claude-sonnet-5' }],
  ['gemini-2.5-pro-computer-use', { and: [{ starts_with: 'gemini-2.5-pro' }, { regex: '^(?!.*-tts$)' }] }],
  ['gpt-6-2026-01-01-pro', { regex: '^gpt-6' }],
  ['super-claude-3-haiku', { contains: 'claude-3-haiku' }],
  ['ft:gpt-4o-mini-2024-07-18:acme::id', { starts_with: 'ft:gpt-4o-mini-2024-' }],
  ['text-moderation-9', { contains: 'moderation' }],
])('%s may be another model', (model, match) => {
  expect(close(model, match)).toBe(false);
});

it('the name of the entry itself is close', () => {
  expect(close('Some-Model', { contains: 'nothing' }, 'some-model')).toBe(true);
});

it('a long name of a hostile list is read at once', () => {
  for (const part of ['1', '123', '-05-20-2025', '2025-08-07', '-v1:0', 'preview'])
    expect(close(`gpt-5-${part.repeat(128 / part.length)}!`, { starts_with: 'gpt-5' })).toBe(false);
});
