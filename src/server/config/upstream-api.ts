/* The APIs that services have at their providers: their names, their paths, and the headers with their keys. */

/** Wires that a model's API may support beside chat completions. */
export const NATIVE_WIRES = ['messages', 'responses', 'gemini'] as const;
export type NativeWireName = (typeof NATIVE_WIRES)[number];

/** OpenAI's Realtime API, a WebSocket. It is no chat wire: requests of other wires are not translated to it. */
export const REALTIME = 'realtime';

/** The APIs that a model's block names. */
export type ModelWire = NativeWireName | 'chat' | typeof REALTIME;

/** Path of the messages wire at a model's API. */
export const MESSAGES_PATH = '/messages';
/** Path of the responses wire. */
export const RESPONSES_PATH = '/responses';
/** The beginning of the paths of the gemini wire. A model, a colon and a method follow. */
export const GEMINI_PATH = '/v1beta/models/';
/** The version of the messages wire for requests without one. */
export const ANTHROPIC_VERSION = '2023-06-01';

/** The version of an API at the end of a base address: `/v1`, or that of Google's API, with its chat API below it. */
const VERSION = /\/v1(?:beta)?(?:\/openai)?$/;

/**
 * The path of a request to an upstream API. `base`: the path of its base address, without a slash at its end. The paths
 * of the gemini wire name their own version, so they replace that of the base address.
 */
export const upstreamPath = (base: string, path: string): string =>
  (path.startsWith(GEMINI_PATH) ? base.replace(VERSION, '') : base) + path;

/** The path of an answer of `model` on the gemini wire. */
export function geminiPath(model: string, stream: boolean): string {
  const name = encodeURIComponent(model.replace(/^models\//, ''));
  return `${GEMINI_PATH}${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}

/** The path whose headers a request to `path` gets: all paths of the gemini wire have the same ones. */
export const pathOfHeaders = (path: string): string => (path.startsWith(GEMINI_PATH) ? GEMINI_PATH : path);

/**
 * The headers with the key of an upstream API, for a request to `path` below its base address. Anthropic's API expects
 * API keys in `x-api-key` and OAuth tokens (`sk-ant-oat…`) as bearer tokens, and refuses them the other way round.
 * Compatible servers often expect a bearer token, so other keys are sent in both headers. Google's API takes keys in
 * `x-goog-api-key` and OAuth tokens (`ya29.…`) as bearer tokens.
 */
export function keyHeaders(apiKey: string | null, path: string): Readonly<Record<string, string>> {
  if (apiKey === null) return {};
  const bearer = { authorization: `Bearer ${apiKey}` };
  if (path.startsWith(GEMINI_PATH)) {
    if (apiKey.startsWith('ya29.')) return bearer;
    const own = { 'x-goog-api-key': apiKey };
    return /^(?:AIza|AQ\.)/.test(apiKey) ? own : { ...bearer, ...own };
  }
  if (path !== MESSAGES_PATH || apiKey.startsWith('sk-ant-oat')) return bearer;
  const own = { 'x-api-key': apiKey };
  return apiKey.startsWith('sk-ant-') ? own : { ...bearer, ...own };
}

/** Image APIs: OpenAI's, that of a tollgate gateway, or OpenRouter's. */
export type ImageWireName = 'openai' | 'tollgate' | 'openrouter';

/** The paths of each image API below its base address: to make images, and to edit them. */
export const IMAGE_PATHS: Readonly<Record<ImageWireName, { readonly make: string; readonly edit: string }>> = {
  openai: { make: '/images/generations', edit: '/images/edits' },
  tollgate: { make: '/image/generate', edit: '/image/edit' },
  openrouter: { make: '/images', edit: '/images' },
};

/** The API of videos: jobs are created at its path, and each job has a path below it. */
export const VIDEO_API = {
  path: '/videos',
  /** The id of a job. That of a package of the AI SDK is what its vendor calls the job, often one or two addresses. */
  jobId: /[\w-]{1,1024}/.source,
} as const;
