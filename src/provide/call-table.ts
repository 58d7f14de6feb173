import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { parseServicePath, type ServiceConfig } from '#gateway/wire';
import type { Forward } from './forward.ts';
import { refuse } from './own-reply.ts';

/** Takes the calls of a tunnel, each by the service that its path names. `forwardOf` is asked once for each service. */
export function createCallTable(
  services: readonly ServiceConfig[],
  forwardOf: (service: ServiceConfig) => Forward,
): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  const table = new Map(services.map((each) => [`${each.service.primitive}/${each.service.name}`, forwardOf(each)]));
  return (stream, headers) => {
    const found = parseServicePath(headers[':path'] ?? '');
    const forward = found && table.get(`${found.primitive}/${found.service}`);
    if (!forward) return refuse(stream, 'unknown_service');
    forward(stream, headers, found.rest);
  };
}
