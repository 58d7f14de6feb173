import type { JsonObject } from '#wire';
import { DOCUMENTED, MUST_BE, nameSchema, numberField, objectField, tokensField } from '#http';
import type { RoutedBody } from '../translated/as-native.ts';
import { gatewayFields } from '../chat/chat-schema.ts';

/** A turn of the conversation, or the instructions. Its other members are not read. */
export interface Content {
  readonly role?: string | null;
  readonly parts?: readonly JsonObject[] | null;
}

/**
 * A request of Google's Gemini API, with its names in camel case, and with the model and the kind of answer that its
 * address names. The schema checks these fields, `decode-request.ts` checks the rest.
 */
export interface GeminiBody extends RoutedBody {
  readonly stream: boolean;
  readonly contents: readonly Content[];
  readonly systemInstruction?: Content | null;
  readonly tools?: readonly JsonObject[] | null;
  readonly toolConfig?: JsonObject | null;
  readonly generationConfig?: JsonObject | null;
  readonly [field: string]: unknown;
}

/** No schema joins a body and an address. So the document has the name in the address alone. */
export const NOT_HERE = { enum: [null] };

const PART_RIGHT = 'an object such as {"text": "…"}';

const MEDIA_TYPE = { type: 'string', pattern: '^[a-z]+/[a-z0-9.+-]+$' };

/** `additionalProperties`: generators of Java make a map of nothing without it. */
const ANY_OR_NULL = { type: ['object', 'null'], additionalProperties: true };

/** The members of an object: null has none. Generators of Java make a class of an alternative that is null. */
const withMembers = (required: JsonObject, others: JsonObject = {}) => ({
  required: Object.keys(required),
  properties: { ...required, ...others },
});

const part = {
  title: 'GeminiPart',
  type: 'object',
  additionalProperties: true,
  properties: {
    text: { type: ['string', 'null'], [MUST_BE]: 'a string' },
    thought: { type: ['boolean', 'null'], description: 'The text is a thought.', [MUST_BE]: 'true or false' },
    thoughtSignature: {
      type: ['string', 'null'],
      description: 'Of an earlier answer, as it came.',
      [MUST_BE]: 'a string of an earlier answer',
    },
    inlineData: objectField('A file: `mimeType`, and `data` in base64.', {
      [DOCUMENTED]: {
        allOf: [withMembers({ mimeType: MEDIA_TYPE, data: { type: 'string', pattern: '^[A-Za-z0-9+/]+={0,2}$' } })],
      },
    }),
    fileData: objectField('A file by its https address: `fileUri` and `mimeType`.', {
      [DOCUMENTED]: {
        allOf: [
          withMembers({
            mimeType: MEDIA_TYPE,
            fileUri: { type: 'string', pattern: '^https://[^\\s]' },
          }),
        ],
      },
    }),
    functionCall: objectField('A call of an earlier answer: `id`, `name` and `args`.', {
      [DOCUMENTED]: {
        allOf: [withMembers({ name: { type: 'string', minLength: 1 } }, { args: ANY_OR_NULL })],
      },
    }),
    functionResponse: objectField('The result of a call: `id`, `name` and `response`.', {
      [DOCUMENTED]: {
        allOf: [withMembers({ name: { type: 'string', minLength: 1 } }, { response: ANY_OR_NULL })],
      },
    }),
    executableCode: objectField('Code that Google ran in an earlier answer.'),
    codeExecutionResult: objectField('Its result.'),
  },
  [MUST_BE]: PART_RIGHT,
  [DOCUMENTED]: {
    allOf: [
      {
        anyOf: [
          { required: ['text'], properties: { text: { type: 'string', minLength: 1 } } },
          ...['inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode'].map((name) => ({
            required: [name],
            properties: { [name]: { type: 'object' } },
          })),
        ],
      },
    ],
  },
};

/** `roles`: null for the instructions, whose role means nothing. */
const contentSchema = (title: string, roles: readonly string[] | null) => ({
  title,
  type: roles === null ? ['object', 'null'] : 'object',
  additionalProperties: true,
  properties: {
    role:
      roles === null
        ? { type: ['string', 'null'], [MUST_BE]: 'a string' }
        : { enum: [...roles, null], description: 'Default `user`.', [MUST_BE]: `one of ${roles.join(', ')}` },
    parts: { type: ['array', 'null'], items: part, [MUST_BE]: 'an array of parts' },
  },
  [MUST_BE]: 'an object with role and parts',
  ...(roles === null
    ? {}
    : { [DOCUMENTED]: { required: ['parts'], allOf: [{ properties: { parts: { type: 'array', minItems: 1 } } }] } }),
});

const texts = (description: string, max: number) => ({
  type: ['array', 'null'],
  maxItems: max,
  items: { type: 'string', [MUST_BE]: 'a string' },
  description,
  [MUST_BE]: `an array of at most ${max} strings`,
});

const config = objectField('How the answer is made.', {
  title: 'GeminiGenerationConfig',
  additionalProperties: true,
  properties: {
    temperature: numberField(0, 2, 'Sampling temperature.'),
    topP: numberField(0, 1, 'Nucleus sampling.'),
    topK: numberField(0, 1_000_000, 'Sample only from this number of most likely tokens.'),
    candidateCount: { enum: [1, null], description: 'One answer is made.', [MUST_BE]: '1 (only one answer is made)' },
    maxOutputTokens: tokensField('Most tokens of the answer. It bounds what the call can cost.'),
    stopSequences: texts('Sequences that end the answer.', 64),
    presencePenalty: numberField(-2, 2, 'Penalty on tokens that have appeared.'),
    frequencyPenalty: numberField(-2, 2, 'Penalty on tokens by how often they have appeared.'),
    seed: { description: 'An integer. The same seed makes the same answer, as far as the model can.' },
    responseMimeType: {
      type: ['string', 'null'],
      description: '`application/json` for an answer in JSON.',
      [MUST_BE]: 'a media type such as "application/json"',
    },
    responseSchema: objectField('Schema of a JSON answer, in the form of OpenAPI.'),
    responseJsonSchema: { description: 'JSON schema of a JSON answer.' },
    responseModalities: texts('Kinds of output, such as `TEXT` and `IMAGE`.', 8),
    thinkingConfig: objectField(
      '`includeThoughts`, `thinkingBudget` (0: off, -1: as much as it likes), `thinkingLevel`.',
      {
        properties: {
          includeThoughts: { type: ['boolean', 'null'], [MUST_BE]: 'true or false' },
          thinkingBudget: { type: ['integer', 'null'], minimum: -1, [MUST_BE]: 'an integer of at least -1' },
          thinkingLevel: { type: ['string', 'null'], maxLength: 32, [MUST_BE]: 'a word such as "LOW"' },
        },
      },
    ),
  },
});

export function geminiSchema(messagesMax: number) {
  return {
    title: 'GeminiRequest',
    type: 'object',
    required: ['contents'],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [{ contents: [{ role: 'user', parts: [{ text: 'What is a tollgate?' }] }] }],
    properties: {
      model: {
        ...nameSchema,
        description: 'The address names the model. If it stands here too, it must be the same.',
        [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
        [DOCUMENTED]: NOT_HERE,
      },
      contents: {
        type: 'array',
        minItems: 1,
        maxItems: messagesMax,
        items: contentSchema('GeminiContent', ['user', 'model', 'function']),
        description: 'The conversation so far. Names in snake case (`inline_data`) are accepted everywhere.',
        [MUST_BE]: `an array of 1 to ${messagesMax} contents`,
      },
      systemInstruction: { ...contentSchema('GeminiInstruction', null), description: 'What the model gets first.' },
      tools: {
        type: ['array', 'null'],
        maxItems: 256,
        items: { type: 'object', additionalProperties: true, [MUST_BE]: 'an object with functionDeclarations' },
        description:
          '`functionDeclarations`: functions that the client runs, each with `name` and `parameters` (in the form of OpenAPI) or `parametersJsonSchema`. ' +
          '`mcpServers`: `streamableHttpTransport.url` is `<this gateway>/mcp/<service>`; the gateway calls its tools. Other tools run only at Google.',
        [MUST_BE]: 'an array of at most 256 tools',
      },
      toolConfig: objectField(
        '`functionCallingConfig`: `mode` (AUTO, ANY, NONE, VALIDATED) and `allowedFunctionNames`.',
      ),
      generationConfig: config,
      safetySettings: {
        type: ['array', 'null'],
        items: { type: 'object', [MUST_BE]: 'an object' },
        description: 'Only providers that support this API get them.',
        [MUST_BE]: 'an array',
      },
      ...gatewayFields,
    },
  } as const;
}

/* The answer as the reference describes it. */

const count = (description: string) => ({ type: 'integer', description });

export const geminiAnswerSchema = {
  title: 'GeminiAnswer',
  type: 'object',
  required: ['candidates', 'modelVersion', 'responseId'],
  additionalProperties: true,
  properties: {
    candidates: {
      type: 'array',
      items: {
        type: 'object',
        required: ['content', 'index'],
        additionalProperties: true,
        properties: {
          content: {
            title: 'GeminiAnswerContent',
            type: 'object',
            required: ['role', 'parts'],
            properties: {
              role: { type: 'string', const: 'model' },
              parts: {
                type: 'array',
                items: {
                  title: 'GeminiAnswerPart',
                  type: 'object',
                  additionalProperties: true,
                  properties: {
                    text: { type: 'string' },
                    thought: { type: 'boolean', description: 'The text is a thought.' },
                    thoughtSignature: {
                      type: 'string',
                      description: 'Send it back with the part. It is encrypted or signed.',
                    },
                    functionCall: {
                      type: 'object',
                      additionalProperties: true,
                      description: '`id`, `name` and `args`.',
                    },
                  },
                },
              },
            },
          },
          index: { type: 'integer' },
          finishReason: {
            type: 'string',
            description: '`STOP`, `MAX_TOKENS` or `SAFETY`. In a stream, only the last event has it.',
          },
          finishMessage: { type: 'string', description: 'Why the answer is not complete.' },
        },
      },
    },
    usageMetadata: {
      title: 'GeminiUsage',
      type: 'object',
      additionalProperties: true,
      description: 'In a stream, the last event has the final one.',
      properties: {
        promptTokenCount: count('Tokens of the prompt, with the cached ones.'),
        cachedContentTokenCount: count('Tokens of the prompt that were read from a cache.'),
        candidatesTokenCount: count('Tokens of the answer without thoughts.'),
        thoughtsTokenCount: count('Tokens of thoughts.'),
        totalTokenCount: count('All tokens.'),
        cost: { type: 'number', description: 'USD charged.' },
        cost_details: { type: 'object', additionalProperties: true, description: 'As at `/chat/completions`.' },
      },
    },
    modelVersion: { type: 'string', description: 'The name that was called.' },
    responseId: { type: 'string', description: 'The header `x-generation-id` has the id of the call.' },
    tollgate: { type: 'object', additionalProperties: true, description: 'The task of an agent.' },
  },
} as const;
