type KeyHeaders = Readonly<Record<string, string>>;

/** Path of the messages wire at a model's API. */
export const MESSAGES_PATH = '/messages';
/** Path of the responses wire. */
export const RESPONSES_PATH = '/responses';
/** The version of the messages wire, for requests whose client names none. */
export const ANTHROPIC_VERSION = '2023-06-01';

/**
 * The headers that carry a key of an upstream API to `path` below its base address. Anthropic's API takes keys in
 * `x-api-key`, servers like it often as a bearer token. Anthropic refuses each kind of its keys in the other header.
 */
export function keyHeaders(apiKey: string | null, path: string): KeyHeaders {
  if (apiKey === null) return {};
  const bearer = { authorization: `Bearer ${apiKey}` };
  if (path !== MESSAGES_PATH || apiKey.startsWith('sk-ant-oat')) return bearer;
  const own = { 'x-api-key': apiKey };
  return apiKey.startsWith('sk-ant-') ? own : { ...bearer, ...own };
}
