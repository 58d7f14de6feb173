type KeyHeaders = Readonly<Record<string, string>>;

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
export function keyHeaders(apiKey: string | null, path: string): KeyHeaders {
  if (apiKey === null) return {};
  const bearer = { authorization: `Bearer ${apiKey}` };
  if (path !== MESSAGES_PATH || apiKey.startsWith('sk-ant-oat')) return bearer;
  const own = { 'x-api-key': apiKey };
  return apiKey.startsWith('sk-ant-') ? own : { ...bearer, ...own };
}
