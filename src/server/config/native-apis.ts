import { isObject, type JsonObject } from '#wire';

/** An API for chat models that some providers speak beside chat completions. */
export interface NativeApi {
  readonly title: string;
  /** Path of a request for an answer of `model`, below the base address of a provider. */
  path(model: string, stream: boolean): string;
  /** The beginning of its paths if it ends in a slash; otherwise its only path. They get its key headers. */
  readonly at: string;
  /**
   * Its paths without their queries: answers of models, but not the files, caches and tuned models of the account.
   * Absent: `at` is the only one.
   */
  readonly answers?: RegExp;
  /** Further paths of answers beside `at`. Absent: none. */
  readonly more?: readonly string[];
  /** Its paths name their own version, so they replace that of the base address. */
  readonly isVersioned?: true;
  /** The headers with an API key. `bearer`: those of most APIs. Absent: these. */
  keyHeaders?(apiKey: string, bearer: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** Headers that a request needs, for one without its own. */
  readonly headers: Readonly<Record<string, string>>;
  readonly probe: NativeProbe;
}

interface NativeProbe {
  body(model: string, stream: boolean): JsonObject;
  readonly last: string;
  isLast(event: JsonObject): boolean;
  /** Reads the usage from an event of a stream, or from a reply in one piece. */
  usageIn(event: JsonObject): unknown;
  /** The members of the usage with the tokens of the prompt and of the answer. */
  readonly counts: readonly [prompt: string, answer: string];
}

const WORD = 'hello';
const TOKENS = 16;

/** The beginning of the paths of Google's API. A model, a colon and a method follow. */
const GEMINI = '/v1beta/models/';

/** The APIs, by the names that models have for them in `wires`. */
export const NATIVE_APIS = {
  messages: {
    title: "Anthropic's Messages API",
    path: () => '/messages',
    at: '/messages',
    /**
     * API keys are expected in `x-api-key` and OAuth tokens (`sk-ant-oat…`) as bearer tokens, and refused the other way
     * round. Compatible servers often expect a bearer token, so other keys are sent in both headers.
     */
    keyHeaders(apiKey, bearer) {
      if (apiKey.startsWith('sk-ant-oat')) return bearer;
      const own = { 'x-api-key': apiKey };
      return apiKey.startsWith('sk-ant-') ? own : { ...bearer, ...own };
    },
    headers: { 'anthropic-version': '2023-06-01' },
    probe: {
      body: (model, stream) => ({
        model,
        max_tokens: TOKENS,
        messages: [{ role: 'user', content: WORD }],
        ...(stream ? { stream } : {}),
      }),
      last: 'message_stop',
      isLast: ({ type }) => type === 'message_stop',
      usageIn: ({ usage, message }) => ({
        ...(isObject(message) && isObject(message['usage']) ? message['usage'] : {}),
        ...(usage as object | undefined),
      }),
      counts: ['input_tokens', 'output_tokens'],
    },
  },
  responses: {
    title: "OpenAI's Responses API",
    path: () => '/responses',
    at: '/responses',
    more: ['/responses/compact'],
    headers: {},
    probe: {
      body: (model, stream) => ({
        model,
        max_output_tokens: TOKENS,
        input: WORD,
        store: false,
        ...(stream ? { stream } : {}),
      }),
      last: 'response.completed',
      // The small cap may end the answer early.
      isLast: ({ type }) => type === 'response.completed' || type === 'response.incomplete',
      usageIn: ({ usage, response }) => (isObject(response) ? response['usage'] : usage),
      counts: ['input_tokens', 'output_tokens'],
    },
  },
  gemini: {
    title: "Google's Gemini API",
    path(model, stream) {
      const name = encodeURIComponent(model.replace(/^models\//, ''));
      return `${GEMINI}${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
    },
    at: GEMINI,
    answers: new RegExp(`^${GEMINI}[^/:]{1,512}:(?:generateContent|streamGenerateContent)$`),
    isVersioned: true,
    /** It takes keys in `x-goog-api-key` and OAuth tokens (`ya29.…`) as bearer tokens. */
    keyHeaders(apiKey, bearer) {
      if (apiKey.startsWith('ya29.')) return bearer;
      const own = { 'x-goog-api-key': apiKey };
      return /^(?:AIza|AQ\.)/.test(apiKey) ? own : { ...bearer, ...own };
    },
    headers: {},
    probe: {
      body: () => ({
        contents: [{ role: 'user', parts: [{ text: WORD }] }],
        generationConfig: { maxOutputTokens: TOKENS },
      }),
      last: 'one with a finishReason',
      isLast: ({ candidates }) =>
        Array.isArray(candidates) && candidates.some((one) => isObject(one) && !!one['finishReason']),
      // An answer that only thought has no tokens of candidates.
      usageIn: ({ usageMetadata: usage }) => (isObject(usage) ? { candidatesTokenCount: 0, ...usage } : usage),
      counts: ['promptTokenCount', 'candidatesTokenCount'],
    },
  },
} as const satisfies Readonly<Record<string, NativeApi>>;

export type NativeWireName = keyof typeof NATIVE_APIS;
