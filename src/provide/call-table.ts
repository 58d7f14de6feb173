import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { IMAGE_PATHS, MESSAGES_PATH, type Primitive, RESPONSES_PATH, VIDEOS_PATH } from '#config';
import { parseServicePath, readEmptyRequest } from '#network/tunnel';
import type { Forward } from './forward.ts';
import { refuse } from './own-reply.ts';

/**
 * The paths that a gateway may call with the provider's key: only work that has a price, not the files, fine-tuning or
 * accounts of the upstream's API. Tools and agents have no such list.
 */
const OFFERED: Readonly<Record<Primitive, (path: string) => boolean>> = {
  model: (path) => MODEL_PATHS.has(path),
  image: (path) => MADE_AT.has(path),
  video: (path) => path.startsWith(VIDEOS_PATH) && BELOW_VIDEOS.test(path.slice(VIDEOS_PATH.length)),
  tool: () => true,
  agent: () => true,
};
const MODEL_PATHS: ReadonlySet<string> = new Set([
  '/chat/completions',
  '/completions',
  '/embeddings',
  MESSAGES_PATH,
  RESPONSES_PATH,
]);
const MADE_AT: ReadonlySet<string> = new Set(Object.values(IMAGE_PATHS).flatMap(({ make, edit }) => [make, edit]));
/** A video job, or its file. */
const BELOW_VIDEOS = /^(?:\/[\w-]{1,128}(?:\/content)?)?$/;

const isOffered = ({ primitive, rest }: { readonly primitive: Primitive; readonly rest: string }): boolean =>
  OFFERED[primitive](rest.split('?', 1)[0]!);

/** The key of a service among the services of a proxy. */
export const keyOfCall = (primitive: Primitive, service: string): string => `${primitive}/${service}`;

/** Creates the handler for the calls of a tunnel. `find` returns the service with a key of `keyOfCall`, or null. */
export function createCallTable(
  find: (key: string) => Forward | null,
): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  return (stream, headers) => {
    const found = parseServicePath(headers[':path'] ?? '');
    const forward = found && find(keyOfCall(found.primitive, found.service));
    if (!forward || !isOffered(found)) return refuse(stream, 'unknown_service');
    readEmptyRequest(stream);
    forward(stream, headers, found.rest);
  };
}
