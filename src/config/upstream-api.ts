/* The APIs that services have at their providers: their names, their paths, and the headers with their keys. */

/** Wires that a model's API may support beside chat completions. */
export const NATIVE_WIRES = ['messages', 'responses'] as const;
export type NativeWireName = (typeof NATIVE_WIRES)[number];

/** Path of the messages wire at a model's API. */
export const MESSAGES_PATH = '/messages';
/** Path of the responses wire. */
export const RESPONSES_PATH = '/responses';
/** The version of the messages wire for requests without one. */
export const ANTHROPIC_VERSION = '2023-06-01';

/**
 * The headers with the key of an upstream API, for a request to `path` below its base address. Anthropic's API expects
 * API keys in `x-api-key` and OAuth tokens (`sk-ant-oat…`) as bearer tokens, and refuses them the other way round.
 * Compatible servers often expect a bearer token, so other keys are sent in both headers.
 */
export function keyHeaders(apiKey: string | null, path: string): Readonly<Record<string, string>> {
  if (apiKey === null) return {};
  const bearer = { authorization: `Bearer ${apiKey}` };
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

/** The path of a video API. Jobs are created there, and each job has a path below it. */
export const VIDEOS_PATH = '/videos';
