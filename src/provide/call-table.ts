import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Primitive, ServiceConfig } from '#config';
import { parseServicePath } from '#network/tunnel';
import type { Forward } from './forward.ts';
import { refuse } from './own-reply.ts';

/**
 * The paths that a gateway may ask for with the provider's key: priced work, not the files, the fine-tuning and the
 * accounts of an upstream's API. Tools and agents are offered whole.
 */
const OFFERED: Readonly<Record<Primitive, RegExp | null>> = {
  model: /^\/(?:chat\/completions|completions|embeddings|messages|responses)$/,
  image: /^\/(?:images(?:\/(?:generations|edits))?|image\/(?:generate|edit))$/,
  video: /^\/videos(?:\/[\w-]{1,128}(?:\/content)?)?$/,
  tool: null,
  agent: null,
};

function isOffered({ primitive, rest }: { readonly primitive: Primitive; readonly rest: string }): boolean {
  return OFFERED[primitive]?.test(rest.split('?', 1)[0]!) ?? true;
}

/** Takes the calls of a tunnel, each by the service that its path names. `forwardOf` is asked once for each service. */
export function createCallTable(
  services: readonly ServiceConfig[],
  forwardOf: (service: ServiceConfig) => Forward,
): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  const table = new Map(services.map((each) => [`${each.service.primitive}/${each.service.name}`, forwardOf(each)]));
  return (stream, headers) => {
    const found = parseServicePath(headers[':path'] ?? '');
    const forward = found && table.get(`${found.primitive}/${found.service}`);
    if (!forward || !isOffered(found)) return refuse(stream, 'unknown_service');
    forward(stream, headers, found.rest);
  };
}
