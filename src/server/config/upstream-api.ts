import { NATIVE_APIS, type NativeApi, type NativeWireName } from './native-apis.ts';

/* The APIs that services have at their providers: their names, their paths, and the headers with their keys. */

/** OpenAI's Realtime API, a WebSocket. It is no chat wire: requests of other wires are not translated to it. */
export const REALTIME = 'realtime';

/** The APIs that a model's block names. */
export type ModelWire = NativeWireName | 'chat' | typeof REALTIME;

const APIS: readonly NativeApi[] = Object.values(NATIVE_APIS);
const BY_PATH: ReadonlyMap<string, NativeApi> = new Map(
  APIS.flatMap((api) => [api.at, ...(api.more ?? [])].map((path) => [path, api] as const)),
);
const BY_PREFIX: readonly NativeApi[] = APIS.filter(({ at }) => at.endsWith('/'));

/** The API that a path below the base address of a provider belongs to; undefined for chat and all others. */
function apiAt(path: string): NativeApi | undefined {
  const exact = BY_PATH.get(path);
  if (exact !== undefined) return exact;
  for (const api of BY_PREFIX) if (path.startsWith(api.at)) return api;
  return undefined;
}

/** The version of an API at the end of a base address: `/v1`, or that of Google's API, with its chat API below it. */
const VERSION = /\/v1(?:beta)?(?:\/openai)?$/;

/** The path of a request to an upstream API. `base`: the path of its base address, without a slash at its end. */
export const upstreamPath = (base: string, path: string): string =>
  (apiAt(path)?.isVersioned ? base.replace(VERSION, '') : base) + path;

/** The path whose headers a request to `path` gets: all paths of one API have the same ones. */
export const pathOfHeaders = (path: string): string => apiAt(path)?.at ?? path;

/** Whether a path without its query is that of an answer in one of the native APIs. */
export function isAnswerPath(path: string): boolean {
  const api = apiAt(path);
  return api !== undefined && (api.answers?.test(path) ?? true);
}

/** The paths of the APIs in `wires` whose requests do not go out as those of chat: see `pathOfHeaders`. */
export const ownPathsOf = (wires: readonly string[]): readonly string[] =>
  wires.flatMap((wire) => {
    const api: NativeApi | undefined = Object.hasOwn(NATIVE_APIS, wire)
      ? NATIVE_APIS[wire as NativeWireName]
      : undefined;
    return api?.keyHeaders === undefined && !api?.isVersioned ? [] : [api.at];
  });

/** The headers with the key of an upstream API, for a request to `path` below its base address. */
export function keyHeaders(apiKey: string | null, path: string): Readonly<Record<string, string>> {
  if (apiKey === null) return {};
  const bearer = { authorization: `Bearer ${apiKey}` };
  return apiAt(path)?.keyHeaders?.(apiKey, bearer) ?? bearer;
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
