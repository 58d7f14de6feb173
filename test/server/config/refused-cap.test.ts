import { describe, expect, it } from 'vitest';
import { readCapRefusal, type CapField } from '../../../src/server/config/refused-cap.ts';

const read = (answer: unknown, field: CapField = 'max_tokens', cap = 32_000, status = 400) =>
  readCapRefusal(status, Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer)), field, cap);
const said = (message: string) => ({ error: { message, type: 'invalid_request_error' } });

describe('a refused cap', () => {
  it.each([
    [
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_completion_tokens',
    ],
    [
      "litellm.BadRequestError: OpenAIException - Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
      'max_completion_tokens',
    ],
    ["Unknown parameter: 'max_tokens'.", null],
    ['Unrecognized request argument supplied: max_tokens', null],
    ['max_tokens is not supported', null],
  ])('by its name: %s', (message, instead) => {
    expect(read(said(message))).toEqual({ kind: 'name', instead });
    expect(read(said(message), 'max_completion_tokens')).toBeNull();
  });

  it.each([
    [
      'max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.',
      16_384,
      true,
    ],
    ['Invalid max_tokens value, the valid range of max_tokens is [1, 8192]', 8_192, true],
    [
      '`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window`',
      8_192,
      true,
    ],
    ['max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000', 8_000, true],
    [
      'The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 32000 instead. Request id: 02',
      12_288,
      true,
    ],
    [
      "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 32000 instead.",
      4_096,
      true,
    ],
    [
      "This model's maximum context length is 40000 tokens. However, you requested 32000 output tokens and your prompt contains at least 8001 input tokens, for a total of at least 40001 tokens.",
      15_999,
      false,
    ],
    [
      'max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022',
      8_192,
      true,
    ],
    [
      'Unable to submit request because it has a maxOutputTokens value of 32000 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.',
      8_192,
      true,
    ],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 32100 tokens (100 in the messages, 32000 in the completion). Please reduce the length.",
      8_092,
      false,
    ],
    [
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 20 input tokens (32000 > 8192 - 20).",
      8_172,
      false,
    ],
  ])('by its size: %s', (message, tokens, lasting) => {
    expect(read(said(message))).toEqual({ kind: 'bound', tokens, lasting });
    expect(read({ error: message })).toEqual({ kind: 'bound', tokens, lasting });
    expect(read({ object: 'error', message })).toEqual({ kind: 'bound', tokens, lasting });
    expect(read({ error: { message: 'Param Incorrect', param: message } })).toEqual({ kind: 'bound', tokens, lasting });
    // A bound that what was sent does not exceed explains nothing.
    expect(read(said(message), 'max_tokens', 5)).toBeNull();
  });

  it('by the list of a FastAPI server', () => {
    const detail = (item: object) => ({ detail: [item] });
    expect(
      read(
        detail({
          type: 'extra_forbidden',
          loc: ['body', 'max_tokens'],
          msg: 'Extra inputs are not permitted',
          input: 1,
        }),
        'max_tokens',
        9,
        422,
      ),
    ).toEqual({
      kind: 'name',
      instead: null,
    });
    expect(read(detail({ type: 'less_than_equal', loc: ['body', 'max_tokens'], ctx: { le: 4096 } }))).toEqual({
      kind: 'bound',
      tokens: 4096,
      lasting: true,
    });
    expect(read(detail({ type: 'extra_forbidden', loc: ['body', 'seed'] }))).toBeNull();
  });
});

describe('what is no refusal of the cap', () => {
  it.each([
    ['another status', said("Unsupported parameter: 'max_tokens'"), 500],
    ['another field', said("Unsupported parameter: 'temperature' is not supported with this model."), 400],
    ['no JSON', "Unsupported parameter: 'max_tokens'", 400],
    ['a list', '[1]', 400],
    ['no words', {}, 400],
    ['a bound of 0', said('Invalid max_tokens value, the valid range of max_tokens is [1, 0]'), 400],
    [
      'another number than was sent',
      said('max_tokens is too large: 999999. This model supports at most 1 completion tokens.'),
      400,
    ],
    [
      'a prompt that is longer than the context',
      said(
        "This model's maximum context length is 10 tokens. However, you requested 32100 tokens (100 in the messages, 32000 in the completion).",
      ),
      400,
    ],
    // A consumer may make a service repeat its words; nothing is learnt from them.
    [
      'words of the consumer',
      said('Invalid value: "max_tokens is too large: 32000. This model supports at most 1 completion tokens."'),
      400,
    ],
    [
      'words of the consumer in a list',
      { detail: [{ type: 'string_type', loc: ['body', 'user'], input: "Unsupported parameter: 'max_tokens'" }] },
      422,
    ],
  ])('%s', (_what, answer, status) => {
    expect(read(answer, 'max_tokens', 32_000, status)).toBeNull();
  });

  it('a very long text, in no time', () => {
    expect(read(said('a'.repeat(60_000)))).toBeNull();
    expect(read(said('aError: '.repeat(8_000)))).toBeNull();
  });
});
